package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// A file that is too long for the log is shown again up to the tokens that one may take, not only as far as the log
// has it.
func TestRestoreShowsMoreOfALongFile(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000)
	talk.look(1_000)
	long := &talk.Messages[len(talk.Messages)-1].Content[0]
	whole := strings.Repeat("a line of a long file\n", 5_000)
	long.Clip = &recall.Clip{ID: "clip-1", Chars: len(whole), Bytes: len(whole), Shown: 1_980}
	long.Text = long.Beginning(whole[:1_980], nil)
	p := pressureOf(t, step{"step": "restore_files"})
	after := newTalk(200_000, 1_000).say(recall.User, 100)
	at := policy.Moment{Whole: func(clip string) string { return map[string]string{"clip-1": whole}[clip] }}
	all := p.Restore(talk.View, after.View, at)
	if len(all) != 1 || all[0].Cut == nil || all[0].Tokens > 5_000 || all[0].Tokens < 4_900 {
		t.Fatalf("got %+v", all)
	}
	m := talk.Messages[len(talk.Messages)-1]
	shown := talk.ShownPart(m, *all[0].Cut)
	text, note, _ := strings.Cut(shown.Text, "\n[The first ")
	if !strings.HasPrefix(whole, text) || len(text) < 14_000 ||
		!strings.HasPrefix(note, fmt.Sprint(len(text), " of ", len(whole), " bytes are shown.")) {
		t.Errorf("%d bytes are shown, then %q", len(text), note)
	}
	all = p.Restore(talk.View, after.View, policy.Moment{})
	if len(all) != 1 || all[0].Cut != nil || all[0].Tokens > 1_000 {
		t.Errorf("without the whole text: %+v", all)
	}
}

// After a compaction the five newest of eight files are shown again: a long one is cut, and none is shown that is still
// in view.
func TestRestoreShowsTheNewestFilesAgain(t *testing.T) {
	t.Parallel()
	talk := newTalk(200_000, 1_000)
	for i := range 8 {
		size := 1_000
		if i == 6 {
			size = 6_000
		}
		talk.look(size)
	}
	p := pressureOf(t, step{"step": "restore_files"})
	after := newTalk(200_000, 1_000).say(recall.User, 100)
	var got []string
	for _, r := range p.Restore(talk.View, after.View, policy.Moment{}) {
		got = append(got, fmt.Sprintf("%s %t", r.Source, r.Cut != nil))
		if r.Named || r.Tokens > 5_000 {
			t.Errorf("%s takes %d tokens; named: %t", r.Source, r.Tokens, r.Named)
		}
	}
	want := []string{"src/file8.go false", "src/file7.go true", "src/file6.go false", "src/file5.go false",
		"src/file4.go false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	after.calls = 7
	after.look(1_000)
	if all := p.Restore(talk.View, after.View, policy.Moment{}); len(all) != 5 || all[0].Source != "src/file7.go" {
		t.Errorf("with file8.go in view: %v", all)
	}
	few := pressureOf(t, step{"step": "restore_files", "max_total_tokens": 2_500})
	total := 0
	for _, r := range few.Restore(talk.View, after.View, policy.Moment{}) {
		total += r.Tokens
	}
	if total > 2_500 || total == 0 {
		t.Errorf("%d tokens are shown again, of 2,500", total)
	}
	full := newTalk(8_000, 7_000).say(recall.User, 100)
	for _, r := range p.Restore(talk.View, full.View, policy.Moment{}) {
		if !r.Named {
			t.Errorf("a full window gets %v", r)
		}
	}
}

// After a compaction, a long file is shown to its budget, and the newest to-do list is shown whole. The summary names a
// file whose text was cleared before, and where it was read.
func TestRestoreAfterACompaction(t *testing.T) {
	t.Parallel()
	v := newTalk(200_000, 1_000).say(recall.User, 100).look(20_000).look(1_000).called("TodoWrite", 20, false).
		called("TodoWrite", 20, false).look(2_000).say(recall.Assistant, 100).
		say(recall.User, 100).say(recall.Assistant, 60_000).say(recall.Assistant, 60_000)
	long, list, clearedFile := v.Messages[2], v.Messages[8], v.Messages[10]
	v.Edits = []clip.Edit{{Position: clearedFile.Position, Kind: clip.Stub, Text: "old result cleared", Step: "x"}}
	p := pressureOf(t, step{"step": "full"}, step{"step": "restore_files"})
	planned, err := p.PlanAndRestore(v.View, policy.Moment{Forced: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(planned.Named) != 1 || planned.Named[0] != (prose.Named{Path: "src/file5.go", Seq: clearedFile.Seq}) {
		t.Errorf("named %v", planned.Named)
	}
	for what, position := range map[string]int{"the long file": long.Position, "the list": list.Position} {
		if !slices.Contains(planned.Kept, position) {
			t.Errorf("%s is not kept: %v", what, planned.Kept)
		}
	}
	if slices.Contains(planned.Kept, v.Messages[6].Position) {
		t.Error("an older list is shown again")
	}
	evicted := planned.Evict(v.View)
	after := planned.View(v.View, summaryOf(evicted))
	if err := plan.CheckNothingLost(v.View, evicted, after); err != nil {
		t.Error(err)
	}
	for i, m := range after.Messages {
		if n := clip.ShownTokens(after)[i]; m.Position == long.Position && (n > 5_000+tokens.PerMessage || n < 4_500) {
			t.Errorf("the long file takes %d tokens, of 5,000", n)
		}
	}
	s, err := summary.Summarize(t.Context(), evicted, plan.Defaults(), nil)
	if err != nil || !strings.Contains(s.Text, fmt.Sprintf("\n- src/file5.go: seq %d", clearedFile.Seq)) {
		t.Errorf("%v; the summary:\n%s", err, s.Text)
	}
}

// If the files do not fit the room together, each is cut to its share. None is dropped for a newer one, and what a
// short file leaves goes to the others.
func TestRestoreSharesTheRoom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		total       int
		sizes, want []int // from the oldest file to the newest; want: tokens at most
	}{
		{"five long files", 10_000, []int{8_000, 8_000, 8_000, 8_000, 8_000}, []int{2_000, 2_000, 2_000, 2_000, 2_000}},
		{"two short ones among them", 10_000, []int{8_000, 500, 8_000, 500, 8_000}, []int{3_000, 500, 3_000, 500, 3_000}},
		{"all fit", 50_000, []int{8_000, 1_000, 4_000}, []int{5_000, 1_000, 4_000}},
		{"room for two of them to say something", 500, []int{8_000, 8_000, 8_000, 8_000}, []int{0, 0, 250, 250}},
		{"no room", 100, []int{8_000, 8_000}, []int{0, 0}},
	} {
		talk := newTalk(200_000, 1_000)
		for _, size := range tt.sizes {
			talk.look(size)
		}
		p := pressureOf(t, step{"step": "restore_files", "max_total_tokens": tt.total})
		all := p.Restore(talk.View, newTalk(200_000, 1_000).say(recall.User, 100).View, policy.Moment{})
		if len(all) != len(tt.sizes) {
			t.Errorf("%s: %d of %d files are named or shown", tt.name, len(all), len(tt.sizes))
			continue
		}
		for i, r := range all {
			want := tt.want[len(tt.want)-1-i]
			if r.Tokens > want+20 || r.Tokens < want-150 && want < 500 || r.Tokens < want*9/10-20 || r.Named != (want == 0) {
				t.Errorf("%s: %s takes %d tokens, named: %t; want %d", tt.name, r.Source, r.Tokens, r.Named, want)
			}
		}
	}
}
