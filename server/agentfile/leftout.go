package agentfile

import (
	"fmt"

	"github.com/loci-memory/loci/agent"
)

// leftOut says what is left out of a full file, and why, as sentences.
func leftOut(r agent.Records) (said []string) {
	for _, one := range []struct {
		n         int
		what, why string
	}{
		{r.Handovers, "Hand-overs", "what they wrote is in working memory and memory files."},
		{r.Waiting, "Updates that wait for an operator's approval", "decide on them before the export."},
		{r.Children, "Sub-agents", "they are agents of their own, and their results are in the messages."},
		{r.Flushes, "Records of silent turns", "their messages are in the file."},
	} {
		if one.n > 0 {
			said = append(said, fmt.Sprintf("%s (%d) are left out: %s", one.what, one.n, one.why))
		}
	}
	return said
}
