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

// Ways in which no model is asked for a summary, because the policy does not want one.
const (
	Noted      clip.How = "notes"  // it is what was noted while the conversation went on
	Unreported clip.How = "hidden" // it says only which messages are hidden
)

// fromNotes returns the notes as the summary, with what they lack: the last request, and lines that matter.
func (w *writer) fromNotes() clip.Summary {
	s := w.summary(w.repaired(prose.CutTo(prose.Clean(w.e.Notes), w.budget*2/3)), Noted)
	s.Model = ""
	return s
}

// hiddenLine matches the line of a summary about messages that were hidden without one.
var hiddenLine = regexp.MustCompile(`(?m)\n*^Not shown and not summarized: (\d+) messages, seq (\d+)–(\d+)\.$`)

// hidden returns the summary before, and a line with the range of the messages that are hidden without one.
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
