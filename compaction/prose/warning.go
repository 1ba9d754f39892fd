package prose

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// warning begins the message that warns a model.
const warning = frame.System + " The context window is "

// WarningLine returns the message that warns a model that its window is nearly full. It names no tool, because it stays
// in the conversation after the agent's tools have changed.
func WarningLine(tokens, window int) string {
	percent := 0
	if window > 0 {
		percent = int(100 * float64(tokens) / float64(window))
	}
	return fmt.Sprintf(warning+"%d %% full. Soon the oldest messages will be replaced by a summary. What must stay at "+
		"hand, write to memory now.", percent)
}

// IsWarning reports whether a message is a WarningLine. Summaries leave it out.
func IsWarning(m recall.Message) bool {
	return m.Role == recall.System && len(m.Content) == 1 && strings.HasPrefix(m.Content[0].Text, warning)
}
