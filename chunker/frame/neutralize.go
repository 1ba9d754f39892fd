package frame

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// White space at the start of a tag or a notice. The reading of a text has no characters without width.
const (
	gap     = `\s*`
	slashes = `/[\s/]*`
	lineGap = `[ \t]*`
)

// alike makes an expression also match ASCII letters and digits that look alike.
var alike = strings.NewReplacer(`i`, `[il1]`, `l`, `[il1]`, `o`, `[o0]`)

// These put a "~" behind the bracket of a tag, one more if the tag has marks already. A text may copy a mark of any
// block's name, so a marked tag may have any name. The expressions match readings of texts.
const (
	tagEnd    = `(?:[\s/>=]|$)`
	anyMarked = `~*(?:` + gap + slashes + `)?[a-z_][a-z0-9_-]*`
)

var (
	tagNames  = gap + `(?:` + slashes + `)?(?:` + alike.Replace(strings.Join(Tags, "|")) + `)`
	frameTag  = regexp.MustCompile(`(?i)<(?:~*` + tagNames + `|~` + anyMarked + `)` + tagEnd)
	markedTag = regexp.MustCompile(`(?i)<~(?:` + anyMarked + `|~*` + tagNames + `)` + tagEnd)
)

// Note tells a model how Neutralize changes tags and notices.
const Note = "Texts are shown verbatim, except that a tag or label of this prompt that occurs in one has a ~ " +
	"after its bracket, as in <~/value> and [~seq 1]; tools accept it with and without the ~."

// maxNoticeBytes is how much of a text is read to decide whether a notice begins there.
const maxNoticeBytes = 512

// signs are the characters with which notices begin.
const signs = "[(#"

// behind recognizes the notices that begin with one sign. It looks at the text behind the sign and its marks.
type behind struct {
	expression *regexp.Regexp
	firsts     string // bytes with which the text may begin, behind marks and spaces; empty: any
}

// noticesBehind maps the first sign of notices to how they are recognized.
func noticesBehind(list []string) map[byte]behind {
	heads, firsts := map[byte][]string{}, map[byte]string{}
	for _, form := range list {
		signAt := strings.IndexAny(form, signs)
		sign, first := form[signAt], firstsOf(strings.TrimLeft(form[signAt+1:], " "))
		if given, ok := firsts[sign]; first == "" || ok && given == "" {
			first = ""
		} else {
			first += given
		}
		heads[sign], firsts[sign] = append(heads[sign], headOf(form)), first
	}
	all := map[byte]behind{}
	for sign, ofSign := range heads {
		all[sign] = behind{regexp.MustCompile(`(?i)^~*` + lineGap + `(?:` + strings.Join(ofSign, "|") + `)`), firsts[sign]}
	}
	return all
}

// firstsOf returns the ASCII bytes with which a notice may begin behind its sign. Empty means any byte.
func firstsOf(form string) string {
	switch first := form[:1]; {
	case strings.HasPrefix(form, "%s"):
		return ""
	case strings.HasPrefix(form, "%d"):
		return "0123456789"
	case strings.ContainsAny(first, "iIlL1oO0"):
		return "iIlL1oO0"
	default:
		return strings.ToLower(first) + strings.ToUpper(first)
	}
}

// sentences returns the line notices that have at least three fixed words among their first six. Neutralize marks them
// anywhere in a line, because such words mean nothing else.
func sentences() (list []string) {
	for _, form := range lineNotices {
		words := strings.Fields(form[1:])
		words = slices.DeleteFunc(words[:min(len(words), 6)], func(w string) bool { return strings.Contains(w, "%") })
		if len(words) >= 3 && !strings.HasPrefix(form[1:], "%s") {
			list = append(list, form)
		}
	}
	return list
}

var lineNotice, inlineNotice = noticesBehind(lineNotices), noticesBehind(slices.Concat(inlineNotices, sentences()))

// Notice is an expression that matches a whole notice in brackets.
var Notice = func() string {
	var heads []string
	for _, form := range lineNotices {
		// A position is a reference, not a notice.
		if form[0] != '[' || strings.HasPrefix(form, label) {
			continue
		}
		head := headOf(form)
		if !strings.HasSuffix(head, `\]`) {
			head += `[^\[\]]*\]`
		}
		heads = append(heads, head)
	}
	return `(?i:\[(?:` + strings.Join(heads, "|") + `))`
}()

// spaced turns the literal part of a notice into an expression. %d matches numerals of any script.
var spaced = strings.NewReplacer(`%d`, `[\d\pN零〇一二三四五六七八九十百千万萬億亿]+`, ` `, `\s*`, `–`, `[–—-]`, `—`, `[–—-]`,
	`i`, `[il1]`, `l`, `[il1]`, `o`, `[o0]`)

// headOf returns an expression for the words that identify a notice. They are at most the first six words behind its
// sign, and end at a colon, before the first %s, or before a number that follows four words.
func headOf(form string) string {
	form = form[strings.IndexAny(form, signs)+1:]
	words := strings.SplitAfter(form, " ")
	words = words[:min(len(words), 6)]
	for i := range words {
		if i >= 3 && strings.HasSuffix(words[i], ": ") {
			words = words[:i+1]
			break
		}
	}
	if last := len(words) - 1; last > 3 && strings.HasPrefix(words[last], "%d") {
		words = words[:last]
	}
	form, begins := strings.Join(words, ""), ""
	if rest, ok := strings.CutPrefix(form, "%s"); ok {
		begins, form = `[^\[\]\n]{0,200}`, rest
	}
	form, _, _ = strings.Cut(form, "%s")
	form = strings.TrimRight(form, " ")
	head := begins + spaced.Replace(regexp.QuoteMeta(form))
	if len(words) < 3 && unicode.IsLetter(rune(form[len(form)-1])) && !strings.HasSuffix(form, "%d") {
		head += `\b`
	}
	return head
}

// Neutralize returns a text in the form that a model may read. It puts a mark into everything that reads like one of
// Tags, like a tag in names, or like a notice; the rest stays verbatim. A model also reads lookalike signs (such as
// fullwidth ones) as a tag, and ignores characters without width; so does Neutralize. Restore undoes it.
func Neutralize(text string, names ...string) string {
	if !strings.ContainsAny(text, "<"+signs) && isPlain(text) {
		return text
	}
	tags := []*regexp.Regexp{frameTag}
	if len(names) > 0 {
		tags = append(tags, regexp.MustCompile(
			`(?i)<(?:`+gap+slashes+`)?(?:`+alike.Replace(strings.Join(names, "|"))+`)`+tagEnd))
	}
	var marks []int
	for _, r := range readingsOf(text) {
		for _, tag := range tags {
			marks = append(marks, r.brackets(tag, r.isType)...)
		}
		marks = append(marks, r.notices()...)
	}
	slices.Sort(marks)
	var b strings.Builder
	from := 0
	for _, end := range slices.Compact(marks) {
		b.WriteString(text[from:end] + "~")
		from = end
	}
	return b.String() + text[from:]
}

// typeArgument matches a tag that may be a type argument in code, as in List<File>.
var typeArgument = regexp.MustCompile(`^<[A-Z][A-Za-z]*>$`)

// isType reports whether the reading from byte from to byte to is a type argument in code. It is one if it is a single
// capitalized name directly behind a name, and no name follows directly. Loci never writes a tag that way. A closing
// tag is never a type argument.
func (r reading) isType(from, to int) bool {
	if !typeArgument.MatchString(r.text[from:to]) || !strings.HasPrefix(r.given[r.inGiven(from):], r.text[from:to]) {
		return false
	}
	before, after := r.text[:from], r.text[to:]
	return (before != "" && isOfName(before[len(before)-1]) || strings.HasSuffix(before, "::")) &&
		(after == "" || !isOfName(after[0]) && after[0] < utf8.RuneSelf)
}

// isOfName reports whether a byte may stand in a name in code.
func isOfName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// notices returns the positions of notices in the given text, directly behind the first sign of each. It finds unmarked
// notices only where Loci writes them, and marked notices anywhere.
func (r reading) notices() (ends []int) {
	for i := range r.signs() {
		end, behind := r.afterBracket(i), clip(r.text[i+1:])
		_, size := utf8.DecodeLastRuneInString(r.given[:end])
		anywhere := strings.HasPrefix(r.given[end:], "~")
		if matches(inlineNotice, r.text[i], behind) ||
			(anywhere || beginsLine(r.given[:end-size])) && matches(lineNotice, r.text[i], behind) {
			ends = append(ends, end)
		}
	}
	return ends
}

// signs yields the positions in the reading where a sign of a notice stands.
func (r reading) signs() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range len(r.text) {
			if c := r.text[i]; (c == '[' || c == '(' || c == '#') && !yield(i) {
				return
			}
		}
	}
}

func matches(notices map[byte]behind, sign byte, text string) bool {
	told := notices[sign]
	if told.expression == nil {
		return false
	}
	if word := strings.TrimLeft(text, "~ \t\n"); told.firsts != "" && word != "" && word[0] < utf8.RuneSelf &&
		strings.IndexByte(told.firsts, word[0]) < 0 {
		return false
	}
	return told.expression.MatchString(text)
}

// clip returns the start of a text, long enough to recognize a notice.
func clip(text string) string { return text[:min(len(text), maxNoticeBytes)] }

// beginsLine reports whether the end of a text is the start of a line.
func beginsLine(text string) bool {
	endsLine := func(r rune) bool { return r == '\n' || strings.ContainsRune(LineEnds, r) }
	last, size := utf8.DecodeLastRuneInString(strings.TrimRightFunc(text, func(r rune) bool {
		return !endsLine(r) && (r == '\t' || strings.TrimSpace(likeASCII(r)) == "")
	}))
	return size == 0 || endsLine(last)
}

// Restore undoes Neutralize in a text, or in part of a text, that a model copied.
func Restore(text string) string {
	if !strings.Contains(text, "~") {
		return text
	}
	var ends []int
	for _, r := range readingsOf(text) {
		ends = append(ends, r.brackets(markedTag, nil)...)
		for i := range r.signs() {
			behind, marked := strings.CutPrefix(clip(r.text[i+1:]), "~")
			if marked && (matches(inlineNotice, r.text[i], behind) || matches(lineNotice, r.text[i], behind)) {
				ends = append(ends, r.afterBracket(i))
			}
		}
	}
	slices.Sort(ends)
	var b strings.Builder
	from := 0
	for _, end := range slices.Compact(ends) {
		if strings.HasPrefix(text[end:], "~") {
			b.WriteString(text[from:end])
			from = end + 1
		}
	}
	return b.String() + text[from:]
}
