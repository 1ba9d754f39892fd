package agentfile

import (
	"fmt"

	"github.com/loci-memory/loci/agent"
)

// leftOut says in sentences what a full file lacks, and why.
func leftOut(r agent.Records) (sentences []string) {
	for _, records := range []struct {
		n         int
		what, why string
	}{
		{r.Handovers, "Hand-overs", "what they wrote is in working memory and memory files."},
		{r.Waiting, "Updates that wait for an operator's approval", "decide on them before the export."},
		{r.Children, "Sub-agents", "they are agents of their own, and their results are in the messages."},
		{r.Flushes, "Records of silent turns", "their messages are in the file."},
	} {
		if records.n > 0 {
			sentences = append(sentences, fmt.Sprintf("%s (%d) are left out: %s", records.what, records.n, records.why))
		}
	}
	return sentences
}
