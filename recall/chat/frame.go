package chat

import (
	"regexp"
	"strings"
)

// The tags that frame the parts of what a model or a summarizer is sent. A closing tag of any frame could end it; an
// opening tag is listed if it alone could pass for a frame.
const (
	closingTags = `memory_blocks|block|description|metadata|value|directories|file_limits|directory|instructions|file|` +
		`more_files|memory_metadata|tool_usage_rules|tool_rule|system|summary|(?:start_|end_)?transcript|` +
		`earlier_summary|previous_summary`
	openingTags = `memory_blocks|block\s+label|directories|directory\s+name|file\s+status|memory_metadata|` +
		`tool_usage_rules|system|(?:start_|end_)?transcript|earlier_summary|previous_summary`
)

// A marked tag or label has "~" after its bracket; one that a text has with marks gets one more.
var (
	frameTag    = regexp.MustCompile(`(?i)<(~*\s*(?:/[\s/]*(?:` + closingTags + `)|(?:` + openingTags + `))(?:[\s/>=]|$))`)
	markedTag   = regexp.MustCompile(strings.Replace(frameTag.String(), "<(~*", "<~(~*", 1))
	frameLabel  = regexp.MustCompile(`((?:^|[\n\r\v\f\x{85}\x{2028}\x{2029}])[ \t]*\[)(seq\s+\d)|(\[~)(~*seq\s+\d)`)
	markedLabel = regexp.MustCompile(`\[~(~*seq\s+\d)`)
)

// FrameNote tells a model how Neutralize shows a tag or a label.
const FrameNote = "Texts are shown verbatim, except that a tag or label of this prompt that occurs in one has a ~ " +
	"after its bracket, as in <~/value> and [~seq 1]; tools accept it with and without the ~."

// Neutralize returns a text as a model is shown it: verbatim, except that what looks like one of the frame tags gets a
// mark, and so does the beginning of a line like the label of a range of the log, "[seq 1". Restore undoes it.
func Neutralize(text string) string {
	if strings.Contains(text, "<") {
		text = frameTag.ReplaceAllString(text, "<~$1")
	}
	if strings.Contains(text, "seq") {
		text = frameLabel.ReplaceAllString(text, "${1}${3}~${2}${4}")
	}
	return text
}

// Restore returns the text that Neutralize shows, for a text, or a part of one between marks, that a model copied.
func Restore(text string) string {
	if strings.Contains(text, "~") {
		text = markedLabel.ReplaceAllString(markedTag.ReplaceAllString(text, "<$1"), "[$1")
	}
	return text
}
