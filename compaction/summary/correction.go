package summary

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/compaction/prose"
)

// correctedMark stands between what was said and what corrects it, with the number of the correction's message.
const correctedMark = " → corrected at [%d]: "

// correctedBy matches a correctedMark and what follows it.
var correctedBy = regexp.MustCompile(` → corrected at \[\d+\]: .*$`)

// correctable are the sections with statements that can be corrected, or correct others.
var correctable = []section{earlier, told, decisions, findings, open}

// joinCorrections puts each correction behind what it corrects, on one line: neither is in view without the other.
func (x *extraction) joinCorrections() {
	var all []*statement
	for _, s := range correctable {
		for n := range x.items[s] {
			if i := &x.items[s][n]; !i.output {
				all = append(all, statementOf(i, s))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *statement) int { return int(a.seq - b.seq) })
	joined := map[*item]bool{}
	for n, now := range all {
		if !now.corrects || correctedBy.MatchString(now.text) {
			continue
		}
		var was *statement
		best := 0.0
		for _, s := range all[max(n-maxCorrected, 0):n] {
			if match := now.correctsWhat(s); match >= best && match > 0 && !joined[s.item] {
				best, was = match, s
			}
		}
		if was == nil {
			continue
		}
		said := numbered.ReplaceAllString("- "+now.text, "")
		was.text = correctedBy.ReplaceAllString(was.text, "") + fmt.Sprintf(correctedMark, now.seq) + said
		was.words = lineWords(plainStatement(was.text))
		was.score = max(was.score, now.score) * correctedGain
		was.rule = was.rule || now.rule
		joined[now.item] = true
		x.markRequests(was.seq, now.seq)
	}
	for _, s := range correctable {
		kept := x.items[s][:0]
		for n := range x.items[s] {
			if !joined[&x.items[s][n]] {
				kept = append(kept, x.items[s][n])
			}
		}
		x.items[s] = kept
	}
}

// requestMark says of a quoted request that something in it was corrected.
const requestMark = " (corrected at [%d])"

var markedRequest = regexp.MustCompile(` \(corrected at \[\d+\]\)$`)

// markRequests marks a message of the user whose statement was corrected.
func (x *extraction) markRequests(was, now int64) {
	for n := range x.items[requests] {
		if i := &x.items[requests][n]; i.seq == was && was > 0 {
			i.text = markedRequest.ReplaceAllString(i.text, "") + fmt.Sprintf(requestMark, now)
		}
	}
}

// statement is an item with what corrections are recognized by.
type statement struct {
	*item
	section section
	content []string // content words
	values  []string // words with digits, and dates
	counted []string // words behind numbers
	asks    bool
}

func statementOf(i *item, in section) *statement {
	text := plainStatement(i.text)
	s := &statement{item: i, section: in, content: prose.ContentWords(text), values: prose.Dates(text),
		asks: strings.HasSuffix(text, "?")}
	for _, w := range prose.SpacedOf(text).Words {
		if r := []rune(w); len(r) == shortWord && r[0] > unicode.MaxLatin1 && unicode.IsLetter(r[0]) {
			s.content = append(s.content, w)
		}
	}
	slices.Sort(s.content)
	s.content = slices.Compact(s.content)
	for _, found := range valueWithUnit.FindAllStringSubmatch(strings.ToLower(text), -1) {
		s.values = append(s.values, valueJoints.ReplaceAllString(found[1], ""))
		s.counted = append(s.counted, prose.ContentWords(found[2])...)
	}
	return s
}

// shortWord is how many letters a word of another script has that ContentWords leaves out.
const shortWord = 3

// plainStatement returns a line without the number of its message and without the words of a correctedMark.
func plainStatement(line string) string {
	return numbered.ReplaceAllString("- "+marks.ReplaceAllString(line, " "), "")
}

// marks matches a correctedMark.
var marks = regexp.MustCompile(` → corrected at \[\d+\]: `)

// valueWithUnit matches a word with a digit, without letters of a script without spaces, and the word behind it.
var valueWithUnit = regexp.MustCompile(`([A-Za-z\pN:._/-]*\pN[A-Za-z\pN:._/-]*)(?:th|st|nd|rd)?\s?([\pL\pM]{0,12})`)

// valueJoints matches signs within a value.
var valueJoints = regexp.MustCompile(`[.:/_-]+`)

// correctsWhat returns how likely a statement corrects an earlier one; 0 if not. It names the value that was wrong,
// says most of the same with another value, counts the same, or gives a value of the same form.
func (now *statement) correctsWhat(was *statement) float64 {
	if was.asks || was.item == now.item || was.seq >= now.seq {
		return 0
	}
	share := commonShare(now.content, was.content)
	switch {
	case hasCommon(now.values, was.values) && (share > 0 || len(now.content) <= 1):
		return 3 + share
	case now.contrast || now.section == findings: // it would name the value
		return 0
	case share >= sameStatement && (len(now.values) > 0) == (len(was.values) > 0):
		return 2 + share
	case share > 0 && hasCommon(now.counted, was.counted):
		return 2 + share
	case hasCommon(now.values, was.values): // it says no, or that something was wrong
		return 1.5
	case hasCommon(valueForms(now.values), valueForms(was.values)):
		return 1 + share
	}
	return 0
}

// sameStatement is the share of common words from which on two statements are of the same.
const sameStatement = 0.5

// commonShare returns the share of the fewer words that the others contain. Both are sorted.
func commonShare(a, b []string) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 {
		return 0
	}
	return prose.ShareIn(a, b)
}

func hasCommon(a, b []string) bool {
	return slices.ContainsFunc(a, func(w string) bool { return slices.Contains(b, w) })
}

// valueForms returns the values of an unmistakable form, with a sign for each letter and digit: times, dates and ids.
func valueForms(values []string) (forms []string) {
	for _, v := range values {
		form := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return '0'
			}
			return 'a'
		}, v)
		if len(form) >= leastForm {
			forms = append(forms, form)
		}
	}
	return forms
}

// leastForm is how many characters a value of an unmistakable form has at least.
const leastForm = 4
