package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// The prompts that policies plan.
const (
	plannedMessages = 2_000
	plannedWindow   = 1_000_000 // tokens
	plannedRuns     = 9
	mostPlanned     = 5 // target in milliseconds of processor time
)

// policies measures the processor time that each preset needs to plan a prompt, compared with encoding the prompt's
// messages as JSON and hashing them, which the server does with every prompt.
func (b *bench) policies(ctx context.Context) error {
	view := longView(plannedMessages)
	moment := policy.Moment{Now: view.Messages[len(view.Messages)-1].CreatedAt.Add(time.Hour), Sent: plannedMessages - 10,
		Touched: view.Messages[len(view.Messages)-1].CreatedAt}
	name := fmt.Sprintf("planning a prompt of %d messages, %d tokens, the slowest policy: ", plannedMessages,
		clip.Estimate(view))
	const versus = "encoding and hashing the prompt"
	first := Row{What: name + "its first prompt, once in a conversation", Unit: "ms CPU", Versus: versus}
	next := Row{What: name + "the prompts after it", Unit: "ms CPU", Versus: versus, AtMost: 0.5}
	for _, preset := range policy.Presets() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := preset.Policy()
		pruned, _ := p.Prune(view, moment)
		nextView := view
		nextView.Edits = pruned.Edits
		for row, v := range map[*Row]clip.View{&first: view, &next: nextView} {
			result := Row{Unit: row.Unit, Versus: versus}
			for range plannedRuns {
				result.measured(processorTime(func() { p.Prune(v, moment) }), processorTime(func() { encode(v) }))
			}
			result.settle(median)
			result.Note = fmt.Sprintf("%s: %s ms", preset.Name, number(result.Loci.Value))
			row.keepWorse(preset.Name, result)
		}
	}
	slowest := Row{What: "the same: the prompts after it, at most", Unit: "ms CPU", AtMost: mostPlanned}
	slowest.Loci.Raw = []float64{next.Loci.Value}
	slowest.settle(median)
	b.report.add(first, next, slowest)
	return nil
}

// longView returns a view with a number of messages: tool calls that read files, every fifth file long, and now and
// then a message of the user.
func longView(messages int) clip.View {
	v := clip.View{Window: plannedWindow, Fixed: 3_000}
	add := func(role recall.Role, p recall.Part) {
		n := len(v.Messages) + 1
		v.Messages = append(v.Messages, recall.Message{ID: fmt.Sprintf("message-%d", n), Seq: int64(n), Position: n,
			Role: role, Content: []recall.Part{p}, CreatedAt: time.Unix(1_800_000_000+int64(n), 0),
			Tokens: tokens.PerMessage + tokens.Estimate(p.Text) + tokens.Estimate(p.Input)})
	}
	for i := 0; len(v.Messages) < messages; i++ {
		if i%10 == 0 {
			add(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprintf("Go on with part %d of the shop.", i)})
		}
		lines := 25
		if i%5 == 0 {
			lines = 300
		}
		id := fmt.Sprint("call-", i)
		add(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: "read_file",
			Input: fmt.Sprintf(`{"path":"src/file_%d.go"}`, i%97)})
		add(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: id,
			Text: fmt.Sprintf("// part %d\n", i%700) + strings.Repeat("\treturn shop.Order(ctx, id, amount)\n", lines)})
	}
	return v
}

// encode encodes the messages of a view as the model sees them, and hashes them.
func encode(v clip.View) [sha256.Size]byte {
	raw, err := json.Marshal(v.AsShown())
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(raw)
}

// processorTime returns the processor time that do takes, in milliseconds. Other processes do not count.
func processorTime(do func()) float64 {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	do()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	return float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano()) / 1e6
}
