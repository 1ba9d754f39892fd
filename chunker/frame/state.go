package frame

import "strings"

// The text around the item at the end of a prompt, which changes by itself.
const (
	stateOpening = "<current_state>\n" + State + "\n\n"
	stateClosing = "\n</current_state>"
)

// StateOf returns the item at the end of a prompt, with a text that was neutralized.
func StateOf(text string) string { return stateOpening + text + stateClosing }

// IsState reports whether a text is the item at the end of a prompt, also within the tags that stand around messages of
// the system. The item is no message.
func IsState(text string) bool {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "<system>\n"), "\n</system>")
	return strings.HasPrefix(text, stateOpening) && strings.HasSuffix(text, stateClosing)
}
