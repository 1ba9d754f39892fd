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
	mostPlanned     = 5 // ms of a processor
)

// policies measures what each policy with a name takes of a processor to plan a prompt, against what the server does
// with every prompt: its messages are encoded as JSON and hashed.
func (b *bench) policies(ctx context.Context) error {
	view := longView(plannedMessages)
	at := policy.Moment{Now: view.Messages[len(view.Messages)-1].CreatedAt.Add(time.Hour), Sent: plannedMessages - 10,
		Touched: view.Messages[len(view.Messages)-1].CreatedAt}
	what := fmt.Sprintf("planning a prompt of %d messages, %d tokens, the slowest policy: ", plannedMessages,
		clip.Estimate(view))
	const versus = "encoding and hashing the prompt"
	first := Row{What: what + "its first prompt, once in a conversation", Unit: "ms CPU", Versus: versus}
	next := Row{What: what + "the prompts after it", Unit: "ms CPU", Versus: versus, AtMost: 0.5}
	for _, preset := range policy.Presets() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := preset.Policy()
		after, _ := p.Prune(view, at)
		later := view
		later.Edits = after.Edits
		for row, v := range map[*Row]clip.View{&first: view, &next: later} {
			of := Row{Unit: row.Unit, Versus: versus}
			for range plannedRuns {
				of.measured(processorTime(func() { p.Prune(v, at) }), processorTime(func() { encode(v) }))
			}
			of.settle(median)
			of.Note = fmt.Sprintf("%s: %s ms", preset.Name, number(of.Loci.Value))
			row.keepWorse(preset.Name, of)
		}
	}
	most := Row{What: "the same: the prompts after it, at most", Unit: "ms CPU", AtMost: mostPlanned}
	most.Loci.Raw = []float64{next.Loci.Value}
	most.settle(median)
	b.report.add(first, next, most)
	return nil
}

// longView is a view of some messages: calls that read files, every fifth of them long, with a word of the user's now
// and then.
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

// encode encodes and hashes the messages of a view as they are shown.
func encode(v clip.View) [sha256.Size]byte {
	raw, err := json.Marshal(v.AsShown())
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(raw)
}

// processorTime returns how long processors work on what is done, in milliseconds, whoever else works on the machine.
func processorTime(do func()) float64 {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	do()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	return float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano()) / 1e6
}
