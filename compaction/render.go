package compaction

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Range names a stretch of an agent's log, both ends included, for expand to read.
func Range(from, to int64) string { return fmt.Sprintf("[seq %d–%d]", from, to) }

// SummaryMessage is a summary as a model reads it: what it stands for, how to read that, and its text.
func SummaryMessage(s Summary) string {
	of := Range(s.FromSeq, s.ToSeq)
	return fmt.Sprintf("%s Earlier messages do not fit the context window and are hidden. To read them, call expand(id=%q) or "+
		"conversation_search. This is a summary of them:\n\n%s", of, of, strings.TrimSpace(s.Text))
}

// SummaryTokens are the tokens of a summary's message.
func SummaryTokens(s Summary) int { return tokens.Estimate(SummaryMessage(s)) + 4 }

// warning begins what a model reads when its window is nearly full.
const warning = "[This is a message of the system, not of the user.] The context window is "

// isWarning tells a message that said how full the window was: nobody needs to know that later.
func isWarning(m recall.Message) bool {
	return m.Role == recall.System && len(m.Content) == 1 && strings.HasPrefix(m.Content[0].Text, warning)
}

// WarningLine is what a model reads when its window is nearly full.
func WarningLine(tokens, window int) string {
	return fmt.Sprintf(warning+"%d %% full. Soon the oldest messages will be "+
		"replaced by a summary; they stay readable by expand and conversation_search. What must stay at hand, write to memory now.",
		percent(tokens, window))
}

func percent(tokens, window int) int {
	if window <= 0 {
		return 0
	}
	return int(100 * float64(tokens) / float64(window))
}
