package summary

import (
	"fmt"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"regexp"
	"strconv"
	"strings"
)

// Ways in which a summary is made if the policy wants no model.
const (
	Noted      clip.How = "notes"  // notes that were taken during the conversation
	Unreported clip.How = "hidden" // says only which messages are hidden
)

// fromNotes returns the notes as the summary, plus what they lack: the last request and important lines.
func (w *writer) fromNotes() clip.Summary {
	s := w.summary(w.repaired(prose.CutTo(prose.Clean(w.e.Notes), w.budget*2/3)), Noted)
	s.Model = ""
	return s
}

// hiddenLine matches the line in a summary about messages that were hidden without a summary.
var hiddenLine = regexp.MustCompile(`(?m)\n*^Not shown and not summarized: (\d+) messages, seq (\d+)–(\d+)\.$`)

// hidden returns the previous summary, plus a line with the range of messages that are hidden without a summary.
func (w *writer) hidden() clip.Summary {
	n, from, to := len(w.e.Messages), w.from(), w.to()
	if found := hiddenLine.FindStringSubmatch(w.previous); found != nil {
		more, _ := strconv.Atoi(found[1])
		first, _ := strconv.ParseInt(found[2], 10, 64)
		n, from = n+more, min(from, first)
	}
	line := fmt.Sprintf("Not shown and not summarized: %d messages, seq %d–%d.", n, from, to)
	w.budget = max(w.e.Budget, plan.MinBudget)
	before := strings.TrimSpace(hiddenLine.ReplaceAllString(w.previous, ""))
	if before != "" {
		before = prose.CutTo(before, w.budget-64) + "\n\n"
	}
	s := w.summary(before+line, Unreported)
	s.Model = ""
	return s
}
