package compaction

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/recall/tokens"
)

// Range names a range of an agent's log, both ends included, as the tool expand reads it.
func Range(from, to int64) string { return fmt.Sprintf("[seq %d–%d]", from, to) }

// SummaryMessage is the text by which a model reads a summary: the range that it replaces, how to read that range, and
// the summary.
func SummaryMessage(s Summary) string {
	of := Range(s.FromSeq, s.ToSeq)
	return fmt.Sprintf("%s Earlier messages do not fit the context window and are hidden. To read them, call "+
		"expand(id=%q) or conversation_search. This is a summary of them:\n\n%s", of, of, strings.TrimSpace(s.Text))
}

// SummaryTokens estimates the tokens of a summary's message.
func SummaryTokens(s Summary) int { return tokens.Estimate(SummaryMessage(s)) + tokens.PerMessage }
