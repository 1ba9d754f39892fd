package frame

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// White space where a tag or a notice begins. What has no width is not in the reading of a text.
const (
	gap     = `\s*`
	slashes = `/[\s/]*`
	lineGap = `[ \t]*`
)

// alike makes an expression match signs of ASCII that look alike, too.
var alike = strings.NewReplacer(`i`, `[il1]`, `l`, `[il1]`, `o`, `[o0]`)

// A marked tag has "~" after its bracket; one that a text has with marks gets one more. Any tag may be marked, because
// some are those of blocks. The expressions match readings of texts.
const (
	tagEnd    = `(?:[\s/>=]|$)`
	anyMarked = `~*(?:` + gap + slashes + `)?[a-z_][a-z0-9_-]*`
)

var (
	tagNames  = gap + `(?:` + slashes + `)?(?:` + alike.Replace(strings.Join(Tags, "|")) + `)`
	frameTag  = regexp.MustCompile(`(?i)<(?:~*` + tagNames + `|~` + anyMarked + `)` + tagEnd)
	markedTag = regexp.MustCompile(`(?i)<~(?:` + anyMarked + `|~*` + tagNames + `)` + tagEnd)
)

// Note tells a model how Neutralize shows a tag or a notice.
const Note = "Texts are shown verbatim, except that a tag or label of this prompt that occurs in one has a ~ " +
	"after its bracket, as in <~/value> and [~seq 1]; tools accept it with and without the ~."

// maxNoticeBytes is the most of a text that is read to tell whether a notice begins there.
const maxNoticeBytes = 512

// signs are the first signs of notices.
const signs = "[(#"

// behind tells notices by what stands behind their first sign and any marks.
type behind struct {
	expression *regexp.Regexp
	firsts     string // the bytes that may be the first behind marks and spaces; none if all may
}

// noticesBehind returns how the notices of a list are told, by their first sign.
func noticesBehind(list []string) map[byte]behind {
	heads, firsts := map[byte][]string{}, map[byte]string{}
	for _, form := range list {
		at := strings.IndexAny(form, signs)
		sign, first := form[at], firstsOf(strings.TrimLeft(form[at+1:], " "))
		if given, ok := firsts[sign]; first == "" || ok && given == "" {
			first = ""
		} else {
			first += given
		}
		heads[sign], firsts[sign] = append(heads[sign], headOf(form)), first
	}
	all := map[byte]behind{}
	for sign, of := range heads {
		all[sign] = behind{regexp.MustCompile(`(?i)^~*` + lineGap + `(?:` + strings.Join(of, "|") + `)`), firsts[sign]}
	}
	return all
}

// firstsOf returns the bytes of ASCII that a form may begin with; none if it may begin with any.
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

// sentences returns the notices of a line that have three words or more. They are marked wherever they stand in a line,
// because no other text has their words. The first six words are compared.
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
		if form[0] != '[' || strings.HasPrefix(form, label) { // a position is a reference, not a notice
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

// spaced makes an expression of the literal part of a form. Any numerals are numbers.
var spaced = strings.NewReplacer(`%d`, `[\d\pN零〇一二三四五六七八九十百千万萬億亿]+`, ` `, `\s*`, `–`, `[–—-]`, `—`, `[–—-]`,
	`i`, `[il1]`, `l`, `[il1]`, `o`, `[o0]`)

// headOf returns an expression of what tells a notice from other texts: its words behind the first sign, at most six,
// up to a colon, to the first text in it, or to a number that follows four words.
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

// Neutralize returns a text as a model is shown it: verbatim, except that what reads like one of Tags gets a mark, and
// so does what reads like a notice. A tag with one of some more names gets a mark, too. A model reads fullwidth and
// other signs that look like those of a tag as that tag, whatever without width stands between them. Restore undoes it.
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

// typeArgument is what a tag looks like that is the argument of a type in code, as in List<File>.
var typeArgument = regexp.MustCompile(`^<[A-Z][A-Za-z]*>$`)

// isType reports whether the part of the reading between two bytes is the argument of a type in code: it is one name,
// written as those of types are, directly behind a name, and no word follows it directly. Loci writes no tag so, and a
// closing tag is none.
func (r reading) isType(from, to int) bool {
	if !typeArgument.MatchString(r.text[from:to]) || !strings.HasPrefix(r.given[r.inGiven(from):], r.text[from:to]) {
		return false
	}
	before, after := r.text[:from], r.text[to:]
	return (before != "" && isOfName(before[len(before)-1]) || strings.HasSuffix(before, "::")) &&
		(after == "" || !isOfName(after[0]) && after[0] < utf8.RuneSelf)
}

// isOfName reports whether a byte may stand in a name of code.
func isOfName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// notices returns where, in the given text, the first signs end of notices that stand where Loci writes them, and of
// those with a mark, wherever they stand.
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

// signs yields where the reading has the first sign of a notice.
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
	of := notices[sign]
	if of.expression == nil {
		return false
	}
	if word := strings.TrimLeft(text, "~ \t\n"); of.firsts != "" && word != "" && word[0] < utf8.RuneSelf &&
		strings.IndexByte(of.firsts, word[0]) < 0 {
		return false
	}
	return of.expression.MatchString(text)
}

// clip returns the beginning of a text in which a notice is told.
func clip(text string) string { return text[:min(len(text), maxNoticeBytes)] }

// beginsLine reports whether what follows a text begins a line.
func beginsLine(text string) bool {
	endsLine := func(r rune) bool { return r == '\n' || strings.ContainsRune(LineEnds, r) }
	last, size := utf8.DecodeLastRuneInString(strings.TrimRightFunc(text, func(r rune) bool {
		return !endsLine(r) && (r == '\t' || strings.TrimSpace(likeASCII(r)) == "")
	}))
	return size == 0 || endsLine(last)
}

// Restore returns the text that Neutralize shows, for a text, or a part of one between marks, that a model copied.
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
