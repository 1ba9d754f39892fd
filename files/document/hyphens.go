package document

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// joint is the character that PDFium writes in place of a hyphen and a line end within a word. Here it also stands for
// a soft hyphen at a line's end.
const joint = '\ufffe'

var (
	// broken matches where a word may be broken at the end of a line.
	broken = regexp.MustCompile(`\x{fffe}\n?|[-\x{2010}]\n`)

	// wholeWord matches a word with the hyphens in it.
	wholeWord = regexp.MustCompile(`[\p{L}\p{M}]+(?:[-\x{2010}][\p{L}\p{M}]+)*`)

	// noWord matches what is no word: an address, a path, the name of something in a program.
	noWord = regexp.MustCompile(`://|@|www\.|[/\\_=#]|[\p{L}\d]\.[\p{L}\d]`)
)

// hyphenation decides which words of a document that are broken at the end of a line are one word without a hyphen.
type hyphenation struct {
	found  map[string]bool // what breaks ask for, in lower case → whether it stands unbroken elsewhere
	sample []string        // words of the document, in lower case
	list   *vocabulary     // of the document's language, once it is looked for; without words if it is not known
}

// newHyphenation reads the pages of a document.
func newHyphenation(pages []string) *hyphenation {
	h := &hyphenation{found: map[string]bool{}}
	for _, page := range pages {
		eachBreak(page, func(before, after string) bool {
			if first, second, ok := halves(before, after); ok {
				h.found[first+second], h.found[first+"-"+second] = false, false
			}
			return false
		})
	}
	if len(h.found) > 0 {
		for _, page := range pages {
			h.read(page)
		}
	}
	return h
}

// maxSampled is how many words of a document are kept to recognize its language.
const maxSampled = 200_000

// read looks for the wanted words on a page.
func (h *hyphenation) read(page string) {
	see := func(word string) {
		if _, wanted := h.found[word]; wanted {
			h.found[word] = true
		}
	}
	for _, span := range wholeWord.FindAllStringIndex(page, -1) {
		previous := ""
		for part := range strings.SplitSeq(strings.ReplaceAll(strings.ToLower(page[span[0]:span[1]]), "\u2010", "-"), "-") {
			see(part)
			see(previous + "-" + part)
			if previous = part; len(h.sample) < maxSampled {
				h.sample = append(h.sample, part)
			}
		}
	}
}

// joins reports whether the two parts of a broken word are one word without a hyphen. They are if that word stands
// elsewhere in the document and the word with the hyphen does not; or, if neither does, if the word list of the
// document's language has it.
func (h *hyphenation) joins(before, after string) bool {
	first, second, ok := halves(before, after)
	if !ok {
		return false
	}
	if whole, hyphened := h.found[first+second], h.found[first+"-"+second]; whole || hyphened {
		return !hyphened
	}
	if h.list == nil {
		list, _ := listFor(h.sample)
		h.list = &list
	}
	return h.list.has(first + second)
}

// halves returns the letters around a break, in lower case. ok is false if they are surely not the halves of one word:
// after a digit or a capital, before a digit or a capital, within an address, and if one of them is a single letter.
func halves(before, after string) (first, second string, ok bool) {
	isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }
	first, second = before[len(strings.TrimRightFunc(before, func(r rune) bool { return !isOther(r) })):], after
	if end := strings.IndexFunc(after, isOther); end >= 0 {
		second = after[:end]
	}
	last, _ := utf8.DecodeLastRuneInString(first)
	next, _ := utf8.DecodeRuneInString(second)
	if utf8.RuneCountInString(first) < 2 || utf8.RuneCountInString(second) < 2 || unicode.IsUpper(last) ||
		unicode.IsUpper(next) || noWord.MatchString(before+strings.TrimRight(after, ".,;:!?)")) {
		return "", "", false
	}
	return strings.ToLower(first), strings.ToLower(second), true
}

// mend returns a page with its broken words on one line, joined or with their hyphen.
func (h *hyphenation) mend(page string) string { return eachBreak(page, h.joins) }

// eachBreak calls joins for each word that is broken at the end of a line, with what stands before and after the break
// up to the next blanks. It returns the page with such words on one line, which ends behind the word.
func eachBreak(page string, joins func(before, after string) bool) string {
	var b strings.Builder
	for rest := page; ; {
		at := broken.FindStringIndex(rest)
		if at == nil {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:at[0]])
		mark := rest[at[0]:at[1]]
		rest = rest[at[1]:]
		before, after := lastRun(b.String()), firstRun(rest)
		if !isBreak(mark, before, after) {
			b.WriteString(strings.ReplaceAll(mark, string(joint), "-"))
			continue
		}
		if !joins(before, wholeRun(rest)) {
			b.WriteString("-")
			if hanging[strings.ToLower(strings.TrimRight(after, ".,"))] {
				b.WriteString(" ")
			}
		}
		b.WriteString(after)
		if rest = rest[len(after):]; rest != "" && (rest[0] == ' ' || rest[0] == '\n') {
			b.WriteString("\n")
			rest = rest[1:]
		}
	}
}

// hanging are words behind a hyphen that stands for the end of a later word: Ein- und Ausgang, short- or long-term.
var hanging = setOf(`und oder bzw sowie beziehungsweise bis and or to et ou y o e en of och eller samt og ja tai sekä
	oraz lub albo i a nebo či és vagy și sau и или ve veya`)

// maxRunBytes is how much of a text without blanks is looked at around a break.
const maxRunBytes = 200

// lastRun returns the characters at the end of a text up to the last blank.
func lastRun(text string) string {
	text = strings.ToValidUTF8(text[max(0, len(text)-maxRunBytes):], "")
	if blank := strings.LastIndexAny(text, " \t\n"); blank >= 0 {
		return text[blank+1:]
	}
	return text
}

// firstRun returns the characters at the beginning of a text up to the first blank or break.
func firstRun(text string) string {
	run := text
	if blank := strings.IndexAny(text[:min(len(text), maxRunBytes)], " \t\n"+string(joint)); blank >= 0 {
		run = text[:blank]
		if strings.HasPrefix(text[blank:], "\n") { // the hyphen at its end is of the next break
			run = strings.TrimRight(run, "-\u2010")
		}
	} else if len(text) > maxRunBytes {
		run = ""
	}
	return run
}

// maxBreaks is how many breaks of one word are looked at.
const maxBreaks = 5

// wholeRun is firstRun, with what follows the further breaks of a word.
func wholeRun(text string) string {
	var whole strings.Builder
	for range maxBreaks {
		run := firstRun(text)
		whole.WriteString(run)
		text = text[len(run):]
		at := broken.FindStringIndex(text[:min(len(text), 10)])
		if run == "" || at == nil || at[0] > 0 {
			break
		}
		text = text[at[1]:]
	}
	return whole.String()
}

// isBreak reports whether a hyphen at the end of a line breaks a word. PDFium has decided where it wrote a joint. Any
// other hyphen does between letters or digits, unless a capital follows: that may be a line of its own.
func isBreak(mark, before, after string) bool {
	if strings.HasPrefix(mark, string(joint)) {
		return before != "" && after != ""
	}
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	return isPart(last) && isPart(next) && !unicode.IsUpper(next)
}
