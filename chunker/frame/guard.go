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

// A marked tag has "~" after its bracket; one that a text has with marks gets one more. Any tag may be marked, because
// some are those of blocks. The expressions match readings of texts.
const (
	tagEnd    = `(?:[\s/>=]|$)`
	anyMarked = `~*(?:` + gap + slashes + `)?[a-z_][a-z0-9_-]*`
)

var (
	tagNames  = gap + `(?:` + slashes + `)?(?:` + strings.Join(Tags, "|") + `)`
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

// noticesBehind matches, by their first sign, what stands behind it and any marks in the notices of a list.
func noticesBehind(list []string) map[byte]*regexp.Regexp {
	heads := map[byte][]string{}
	for _, form := range list {
		sign := form[strings.IndexAny(form, signs)]
		heads[sign] = append(heads[sign], headOf(form))
	}
	behind := map[byte]*regexp.Regexp{}
	for sign, all := range heads {
		behind[sign] = regexp.MustCompile(`(?i)^~*` + lineGap + `(?:` + strings.Join(all, "|") + `)`)
	}
	return behind
}

var lineNotice, inlineNotice = noticesBehind(lineNotices), noticesBehind(inlineNotices)

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

// spaced makes an expression of the literal part of a form.
var spaced = strings.NewReplacer(`%d`, `\d+`, ` `, `\s*`, `–`, `[–-]`)

// headOf returns an expression of what tells a notice from other texts: its words behind the first sign, at most six,
// up to the first text in it.
func headOf(form string) string {
	form = form[strings.IndexAny(form, signs)+1:]
	words := strings.SplitAfter(form, " ")
	form, begins := strings.Join(words[:min(len(words), 6)], ""), ""
	if rest, ok := strings.CutPrefix(form, "%s"); ok {
		begins, form = `[^\[\]\n]{0,200}`, rest
	}
	form, _, _ = strings.Cut(form, "%s")
	form = strings.TrimRight(form, " ")
	head := begins + spaced.Replace(regexp.QuoteMeta(form))
	if unicode.IsLetter(rune(form[len(form)-1])) {
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
	r := readingOf(text)
	marks := r.brackets(frameTag)
	if len(names) > 0 {
		marks = append(marks, r.brackets(regexp.MustCompile(
			`(?i)<(?:`+gap+slashes+`)?(?:`+strings.Join(names, "|")+`)`+tagEnd))...)
	}
	marks = append(marks, r.notices()...)
	slices.Sort(marks)
	var b strings.Builder
	from := 0
	for _, end := range slices.Compact(marks) {
		b.WriteString(text[from:end] + "~")
		from = end
	}
	return b.String() + text[from:]
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

func matches(notices map[byte]*regexp.Regexp, sign byte, behind string) bool {
	expression := notices[sign]
	return expression != nil && expression.MatchString(behind)
}

// clip returns the beginning of a text in which a notice is told.
func clip(text string) string { return text[:min(len(text), maxNoticeBytes)] }

// beginsLine reports whether what follows a text begins a line.
func beginsLine(text string) bool {
	endsLine := func(r rune) bool { return r == '\n' || strings.ContainsRune(LineEnds, r) }
	last, size := utf8.DecodeLastRuneInString(strings.TrimRightFunc(text, func(r rune) bool {
		return !endsLine(r) && (likeASCII(r) == ' ' || unicode.In(r, unicode.Zs, unicode.Cf, unicode.Cc))
	}))
	return size == 0 || endsLine(last)
}

// Restore returns the text that Neutralize shows, for a text, or a part of one between marks, that a model copied.
func Restore(text string) string {
	if !strings.Contains(text, "~") {
		return text
	}
	r := readingOf(text)
	ends := r.brackets(markedTag)
	for i := range r.signs() {
		behind, marked := strings.CutPrefix(clip(r.text[i+1:]), "~")
		if marked && (matches(inlineNotice, r.text[i], behind) || matches(lineNotice, r.text[i], behind)) {
			ends = append(ends, r.afterBracket(i))
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
