package compaction

import (
	"fmt"

	"github.com/loci-memory/loci/recall"
)

func Range(from, to int64) string { return fmt.Sprintf("[seq %d–%d]", from, to) }

func SummaryMessage(s Summary) string { return Range(s.FromSeq, s.ToSeq) + s.Text }

func SummaryTokens(s Summary) int { return recall.Tokens(SummaryMessage(s)) + 4 }
