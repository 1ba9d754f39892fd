package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// After a compaction the five newest of eight files are shown again: a long one only by its name, and none that is
// still in view.
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
	for _, r := range p.Restore(talk.Messages, after.View, policy.Moment{}) {
		got = append(got, fmt.Sprintf("%s %v", r.Source, r.Named))
	}
	want := []string{"src/file8.go false", "src/file7.go true", "src/file6.go false", "src/file5.go false",
		"src/file4.go false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	after.calls = 7
	after.look(1_000)
	if all := p.Restore(talk.Messages, after.View, policy.Moment{}); len(all) != 5 || all[0].Source != "src/file7.go" {
		t.Errorf("with file8.go in view: %v", all)
	}
	few := pressureOf(t, step{"step": "restore_files", "max_total_tokens": 2_500})
	total := 0
	for _, r := range few.Restore(talk.Messages, after.View, policy.Moment{}) {
		total += r.Tokens
	}
	if total > 2_500 || total == 0 {
		t.Errorf("%d tokens are shown again, of 2,500", total)
	}
	full := newTalk(8_000, 7_000).say(recall.User, 100)
	if all := p.Restore(talk.Messages, full.View, policy.Moment{}); len(all) > 1 {
		t.Errorf("a full window gets %v", all)
	}
}

// After a compaction, the summary names a file that is too long to be shown again, and where it was read.
func TestRestoreNamesLongFiles(t *testing.T) {
	t.Parallel()
	v := newTalk(200_000, 1_000).say(recall.User, 100).look(20_000).look(1_000).say(recall.Assistant, 100).
		say(recall.User, 100).say(recall.Assistant, 60_000).say(recall.Assistant, 60_000)
	p := pressureOf(t, step{"step": "full"}, step{"step": "restore_files"})
	planned, err := p.PlanAndRestore(v.View, policy.Moment{Forced: true})
	if err != nil {
		t.Fatal(err)
	}
	long := v.Messages[2]
	if len(planned.Named) != 1 || planned.Named[0] != (prose.Named{Path: "src/file1.go", Seq: long.Seq}) ||
		!slices.Contains(planned.Kept, v.Messages[4].Position) {
		t.Fatalf("named %v, kept %v", planned.Named, planned.Kept)
	}
	s, err := summary.Summarize(t.Context(), planned.Evict(v.View), plan.Defaults(), nil)
	if err != nil || !strings.Contains(s.Text, fmt.Sprintf("\n- src/file1.go: seq %d", long.Seq)) {
		t.Errorf("%v; the summary:\n%s", err, s.Text)
	}
}
