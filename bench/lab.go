package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// The replayed sessions.
const (
	replayedWindow  = 128_000 // in tokens
	replayedSeconds = 60      // target of processor time for a session of 1,000 turns
	mostReplayed    = 1_000   // number of turns
)

// replays measures the processor time to replay a session under all presets, without a model.
func (b *bench) replays(ctx context.Context) error {
	turns := min(b.Turns, mostReplayed)
	row := Row{What: fmt.Sprintf("replaying a session of %d turns, %d messages, under all %d policies", turns, 4*turns,
		len(policy.Presets())), Unit: "s CPU", AtMost: replayedSeconds}
	var failed error
	milliseconds := processorTime(func() {
		session := lab.NewSession(recordedTurns(turns))
		for _, p := range policy.Presets() {
			settings := lab.Settings{Name: p.Name, Policy: p.Policy(), Window: replayedWindow, Prices: policy.UsualPrices}
			if _, failed = lab.ReplayOf(ctx, session, settings); failed != nil {
				return
			}
		}
	})
	row.Loci.Raw = []float64{milliseconds / 1e3}
	row.settle(median)
	b.report.add(row)
	return failed
}

// recordedTurns returns a session with turns that each ask, read a file, and answer.
func recordedTurns(turns int) transcript.Transcript {
	t := transcript.Transcript{Name: "recorded", System: "You repair programs."}
	add := func(role recall.Role, p recall.Part) {
		t.Drafts = append(t.Drafts, recall.Draft{Role: role, Content: []recall.Part{p}})
	}
	for i := range turns {
		id := fmt.Sprint("call-", i)
		add(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprintf("What does part %d do?", i)})
		add(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: "read_file",
			Input: fmt.Sprintf(`{"path":"src/part_%03d.go"}`, i)})
		add(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: id, Text: fmt.Sprintf("const limit_%03d = %d\n", i, i) +
			strings.Repeat("\treturn shop.Order(ctx, id, amount)\n", 60)})
		add(recall.Assistant, recall.Part{Type: recall.Text, Text: fmt.Sprintf("It uses limit_%03d.", max(i-4, 0))})
	}
	return t
}
