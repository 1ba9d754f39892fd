package summary_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// In a window of 200,000 tokens a part of a staged summary has at most 75,904, and fewer if messages are long.
func TestMaxChunkOf200000Is75904(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ window, average, want int }{
		{200_000, 1_000, 75_904}, {200_000, 16_666, 75_904}, {200_000, 20_000, 27_904}, {200_000, 100_000, 25_904},
		{8_000, 100, 1_000},
	} {
		if got := summary.MaxChunk(c.window, c.average); got != c.want {
			t.Errorf("a window of %d, messages of %d: %d, want %d", c.window, c.average, got, c.want)
		}
	}
}

// Stages are cut into groups of about equal size. Few messages, or messages that fit one part, are not cut.
func TestStageCuts(t *testing.T) {
	t.Parallel()
	d := &dialogue{}
	for range 6 {
		d.look(1_000)
	}
	sizes := make([]int, len(d.messages))
	for i, m := range d.messages {
		sizes[i] = m.Tokens
	}
	for _, c := range []struct {
		n, most int
		want    string
	}{{3, 10, "[]"}, {12, 10_000, "[]"}, {12, 5_000, "[6]"}, {12, 2_500, "[4 8]"}} {
		if got := summary.StageCuts(d.messages[:c.n], sizes[:c.n], c.most); fmt.Sprint(got) != c.want {
			t.Errorf("%d messages, at most %d: %v, want %s", c.n, c.most, got, c.want)
		}
	}
}

// A request that was too large loses the oldest fifth of its rounds, or as many as close the gap. At least one round
// stays.
func TestHeadDrop(t *testing.T) {
	t.Parallel()
	groups := func(n, tokens int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = tokens
		}
		return all
	}
	for _, c := range []struct{ n, tokens, gap, want int }{
		{10, 12_000, 0, 2}, {10, 12_000, 30_000, 3}, {10, 12_000, 1 << 30, 9}, {1, 12_000, 0, 0}, {2, 12_000, 0, 1},
		{0, 0, 5, 0},
	} {
		if got := summary.HeadDrop(groups(c.n, c.tokens), c.gap); got != c.want {
			t.Errorf("%d groups of %d, a gap of %d: %d are dropped, want %d", c.n, c.tokens, c.gap, got, c.want)
		}
	}
}

// rounds returns evicted messages: n requests, each with a round of a tool.
func rounds(n, tokens int) clip.Evicted {
	d := &dialogue{}
	for i := range n {
		d.user(fmt.Sprintf("Step %d of PROJ-%d, please.", i, 1000+i)).look(tokens)
	}
	return clip.Evicted{Messages: d.messages, Budget: 2_000}
}

// look adds a tool call, and its result with this many tokens.
func (d *dialogue) look(tokens int) {
	id := fmt.Sprint("c", len(d.messages))
	d.add(recall.Assistant, called(id, "{}")).
		add(recall.Tool, result(id, strings.Repeat("the ", max(tokens-4, 0))))
}

func called(id, input string) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: "run", Input: input}
}

func result(id, s string) recall.Part {
	return recall.Part{Type: recall.ToolReturn, CallID: id, Text: s}
}

// A transcript that is too long for the model is summarized in parts, the oldest first, and these are merged.
func TestStagedSummaryMergesParts(t *testing.T) {
	t.Parallel()
	e := rounds(30, 600)
	e.Format = &prose.Format{Staged: true, Sections: []prose.FormatSection{{Heading: "## All", Words: "All."}}}
	model := &writer{answer: func(_ context.Context, n int, _ summary.Request) (summary.Reply, error) {
		return reply(fmt.Sprintf("Answer %d: PROJ-1029 comes last.", n))
	}}
	s, err := summary.Summarize(t.Context(), e, plan.Defaults(),
		&summary.Model{Summarizer: model, Name: "fake", Window: 24_000})
	if err != nil || s.How != summary.Staged {
		t.Fatal(s.How, s.Why, err)
	}
	merge := 0
	for i, r := range model.asked {
		if strings.Contains(lastOf(r), "Chunk 1 — oldest") && merge == 0 {
			merge = i
		}
	}
	asked := lastOf(model.asked[merge])
	first, last := strings.Index(asked, "Answer 1:"), strings.Index(asked, fmt.Sprintf("Answer %d:", merge))
	if merge < 2 || first < 0 || last < first || !strings.Contains(asked, "— most recent") ||
		!strings.HasPrefix(s.Text, fmt.Sprintf("Answer %d:", merge+1)) {
		t.Errorf("%d calls before the merge, the summary is\n%s", merge, s.Text)
	}
	for i, r := range model.asked[:merge] {
		if !strings.Contains(lastOf(r), fmt.Sprintf("[Part %d of %d, by itself]", i+1, merge)) {
			t.Errorf("call %d asks for\n%.200s", i+1, lastOf(r))
		}
	}
	few := e
	few.Messages = e.Messages[:3]
	if s, err = summary.Summarize(t.Context(), few, plan.Defaults(),
		&summary.Model{Summarizer: model, Name: "fake", Window: 24_000}); err != nil || s.How != clip.Whole {
		t.Error("three messages:", s.How, err)
	}
}

// If the model fails at a later part, the summaries so far are kept, with a note about what was not read.
func TestStagedSummaryKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	e := rounds(30, 600)
	e.Format = &prose.Format{Staged: true, Sections: []prose.FormatSection{{Heading: "## All", Words: "All."}}}
	for failing, want := range map[int]string{1: "(Made without a model", 2: "[Parts 1–1 of "} {
		model := &writer{answer: func(_ context.Context, n int, _ summary.Request) (summary.Reply, error) {
			if n >= failing {
				return summary.Reply{}, errors.New("down")
			}
			return reply("Step 0 went well.")
		}}
		s, err := summary.Summarize(t.Context(), e, plan.Defaults(),
			&summary.Model{Summarizer: model, Name: "fake", Window: 24_000})
		if err != nil || !strings.Contains(s.Text, want) || !strings.Contains(s.Text, "PROJ-1029") {
			t.Errorf("call %d fails: %v\n%s", failing, err, s.Text)
		}
	}
}

// If a conversation is too long for the model, the oldest rounds are left out until it fits, and what they said is not
// lost.
func TestFullSummaryDropsTheOldestRounds(t *testing.T) {
	t.Parallel()
	e := rounds(20, 500)
	e.Format = &prose.Format{HeadDrop: true, Sections: []prose.FormatSection{{Heading: "## All", Words: "All."}}}
	model := &writer{answer: func(_ context.Context, n int, r summary.Request) (summary.Reply, error) {
		if n < 3 {
			return summary.Reply{}, &summary.Overflow{Reason: "too long"}
		}
		return reply("We are at PROJ-1019.")
	}}
	s, err := summary.Summarize(t.Context(), e, plan.Defaults(),
		&summary.Model{Summarizer: model, Name: "fake", Window: 0})
	if err != nil || s.How != clip.Middle {
		t.Fatal(s.How, err)
	}
	for i, first := range []string{"PROJ-1000", "PROJ-1004", "PROJ-1007"} {
		_, asked, _ := strings.Cut(lastOf(model.asked[i]), "<transcript")
		if !strings.Contains(asked, first) || i > 0 && !strings.Contains(asked, "Left out here") {
			t.Errorf("call %d does not begin at %s:\n%.300s", i+1, first, asked)
		}
	}
	if !strings.Contains(s.Text, "Not read by the model for lack of room") {
		t.Error(s.Text)
	}
}
