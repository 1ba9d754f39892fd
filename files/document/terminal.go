package document

import (
	"regexp"
	"strings"
)

// withoutCommands drops what a text says to a terminal alone: colours and other escape sequences, bells, and control
// characters that have no meaning in a text. Characters that are struck over, as in manual pages, stand once. Line
// ends, tabs, form feeds and the separators of fields stay.
func withoutCommands(text string) string {
	if !strings.ContainsFunc(text, isCommand) {
		return text
	}
	text = escapeSequences.ReplaceAllString(text, "")
	for strings.Contains(text, "\b") {
		shorter := struckOver.ReplaceAllString(text, "")
		if shorter == text {
			break
		}
		text = shorter
	}
	return strings.Map(func(r rune) rune {
		if isCommand(r) {
			return -1
		}
		return r
	}, text)
}

// isCommand reports whether a character is one that only terminals use.
func isCommand(r rune) bool {
	return r == '\a' || r == '\b' || r == '\x0e' || r == '\x0f' || r == '\x1b' || r == '\x7f' ||
		r >= 0x80 && r <= 0x9f
}

var (
	// Control sequences, strings up to their end, and other sequences of ECMA-48, in seven bits and in eight.
	escapeSequences = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]` +
		`|(?:\x1b[\]PX^_]|[\x{9d}\x{90}\x{98}\x{9e}\x{9f}])[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})` +
		`|\x1b[ -/]*[0-~]`)
	struckOver = regexp.MustCompile(`[^\n\x08]\x08`)
)
