package chat

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// The tags that frame the parts of what a model or a summarizer is sent. A closing tag of any frame could end it; an
// opening tag is listed if it alone could pass for a frame.
const (
	closingTags = `memory_blocks|block|description|metadata|value|directories|file_limits|directory|instructions|file|` +
		`working_memory|last_edit|more_files|memory_metadata|tool_usage_rules|tool_rule|persona|human|system|summary|` +
		`(?:start_|end_)?transcript|earlier_summary|previous_summary|memory_files`
	openingTags = `memory_blocks|block\s+label|directories|directory\s+name|file\s+status|file_limits|more_files|` +
		`working_memory|memory_metadata|tool_usage_rules|system|(?:start_|end_)?transcript|earlier_summary|` +
		`previous_summary|memory_files\s+index`
)

// SystemNotice begins what Loci tells a model in a conversation.
const SystemNotice = "[This is a message of the system, not of the user.]"

// notices match, after the bracket, what Loci writes between the texts of a conversation: that it speaks itself, what
// is empty, and what is left out.
const notices = `this is a message of the system\b|no result yet\b|the result of this call\b|` +
	`the (?:result|message) is empty\b|` +
	`(?:the first )?\d+ (?:of|more) (?:\d+ )?(?:bytes|characters)\b|cut(?: here\b|:)|images left out here\b`

// Notice is an expression that matches a whole notice.
const Notice = `(?i:\[(?:cut|(?:` + notices + `)[^\[\]]*)\])`

// White space where a tag or a label begins. What has no width is not in the reading of a text.
const (
	gap     = `\s*`
	slashes = `/[\s/]*`
	lineGap = `[ \t]*`
)

// A marked tag or label has "~" after its bracket; one that a text has with marks gets one more. Any closing tag may be
// marked, because some are those of blocks. The expressions match readings of texts.
const (
	tagEnd    = `(?:[\s/>=]|$)`
	anyMarked = `~*` + gap + slashes + `[a-z_][a-z0-9_-]*`
)

var (
	frameTag = regexp.MustCompile(`(?i)<(?:~*` + gap + `(?:` + slashes + `(?:` + closingTags + `)|(?:` +
		openingTags + `))|~` + anyMarked + `)` + tagEnd)
	markedTag   = regexp.MustCompile(`(?i)<~(?:` + anyMarked + `|~*` + gap + `(?:` + openingTags + `))` + tagEnd)
	frameLabel  = regexp.MustCompile(`(?i)\[~*` + lineGap + `(?:seq` + lineGap + `\d|cut\]|` + notices + `)`)
	markedLabel = regexp.MustCompile(strings.Replace(frameLabel.String(), `\[~*`, `\[~~*`, 1))
)

// FrameNote tells a model how Neutralize shows a tag or a label.
const FrameNote = "Texts are shown verbatim, except that a tag or label of this prompt that occurs in one has a ~ " +
	"after its bracket, as in <~/value> and [~seq 1]; tools accept it with and without the ~."

// Neutralize returns a text as a model is shown it: verbatim, except that what reads like one of the frame tags gets a
// mark, and so does the beginning of a line like the label of a range of the log, "[seq 1", or like a notice. A closing
// tag with one of some more names gets a mark, too. A model reads fullwidth and other signs that look like those of a
// tag as that tag, whatever without width stands between them. Restore undoes it.
func Neutralize(text string, names ...string) string {
	if strings.IndexByte(text, '<') < 0 && strings.IndexByte(text, '[') < 0 && isASCII(text) {
		return text
	}
	r := readingOf(text)
	marks := r.brackets(frameTag)
	if len(names) > 0 {
		marks = append(marks, r.brackets(regexp.MustCompile(
			`(?i)<`+gap+slashes+`(?:`+strings.Join(names, "|")+`)`+tagEnd))...)
	}
	for _, end := range r.brackets(frameLabel) {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		if strings.HasPrefix(text[end:], "~") || beginsLine(text[:end-size]) {
			marks = append(marks, end)
		}
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

// beginsLine reports whether what follows a text begins a line.
func beginsLine(text string) bool {
	last, size := utf8.DecodeLastRuneInString(strings.TrimRightFunc(text, func(r rune) bool {
		return r == '\t' || unicode.In(r, unicode.Zs, unicode.Cf)
	}))
	return size == 0 || strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", last)
}

// shown returns the text of a part as a model is shown it: a notice of Loci's own in it is not neutralized.
func shown(p recall.Part) string {
	from, to := p.NoteAt[0], p.NoteAt[1]
	if to == 0 && p.Clip != nil {
		from, to = p.Clip.Shown, len(p.Text)
	}
	if from < 0 || from > to || to > len(p.Text) {
		return Neutralize(p.Text)
	}
	return Neutralize(p.Text[:from]) + p.Text[from:to] + Neutralize(p.Text[to:])
}

// Restore returns the text that Neutralize shows, for a text, or a part of one between marks, that a model copied.
func Restore(text string) string {
	if !strings.Contains(text, "~") {
		return text
	}
	r := readingOf(text)
	var b strings.Builder
	from := 0
	for _, end := range slices.Sorted(slices.Values(append(r.brackets(markedTag), r.brackets(markedLabel)...))) {
		if strings.HasPrefix(text[end:], "~") {
			b.WriteString(text[from:end])
			from = end + 1
		}
	}
	return b.String() + text[from:]
}
