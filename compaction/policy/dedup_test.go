package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// A file that is read three times unchanged is shown once. A file that changed is shown once for each version.
func TestDedupComparesTextsNotCalls(t *testing.T) {
	t.Parallel()
	first, second := sea(2000), "changed "+sea(2000)
	read := func(texts ...string) *viewBuilder {
		v := window(200_000).user(10)
		for _, s := range texts {
			v.calling("read_file", `{"path":"config.yaml"}`, s)
		}
		return v.says(10)
	}
	for _, c := range []struct {
		name     string
		settings string
		v        *viewBuilder
		want     string // the first characters of each shown result; p: a pointer
	}{
		{"turns 3, 7, 14", ``, read(first, first, first), "ppw"},
		{"the oldest is kept", `,"keep":"oldest"`, read(first, first, first), "wpp"},
		{"edited between 7 and 14", ``, read(first, first, second), "pww"},
		{"edited, superseded", `,"supersede":true`, read(first, second), "lw"},
		{"written with other line ends", ``, read(strings.ReplaceAll(first+"\na", "\n", "\r\n"), first+"\na\n"), "pw"},
		{"protected", `,"protect_newest":2`, read(first, first, first), "pww"},
		{"too short", ``, read("short", "short"), "ww"},
		{"other tools", `,"tools":["grep*"]`, read(first, first), "ww"},
	} {
		after, edits := c.v.prune(`{"steps":[{"step":"dedup"`+c.settings+`}]}`, policy.Moment{})
		got := ""
		for _, m := range c.v.Messages {
			if m.Role != recall.Tool {
				continue
			}
			letter := "w"
			for _, e := range edits {
				if e.Position == m.Position {
					letter = string(e.Kind[0])
				}
			}
			got += letter
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %v", c.name, got, c.want, edits)
		}
		c.v.Edits = after.Edits
		if again, more := c.v.prune(`{"steps":[{"step":"dedup"`+c.settings+`}]}`, policy.Moment{}); len(more) > 0 ||
			fmt.Sprint(again.AsShown()) != fmt.Sprint(after.AsShown()) {
			t.Errorf("%s: a second time it edits %v", c.name, more)
		}
	}
}

// A pointer never leads to a pointer. If its target is gone, it says that the text is cleared.
func TestPointersLeadToText(t *testing.T) {
	t.Parallel()
	newest := `{"steps":[{"step":"dedup"}]}`
	v := window(200_000).user(10).call("read", 5, sea(2000)).call("read", 5, sea(2000)).says(10)
	after, _ := v.prune(newest, policy.Moment{})
	v.Edits = after.Edits
	v.user(10).call("read", 5, sea(2000)).says(10)
	after, edits := v.prune(newest, policy.Moment{})
	if len(edits) != 2 || edits[0].CopySeq != 9 || edits[1].CopySeq != 9 {
		t.Errorf("after a third copy: %v", edits)
	}
	oldest := `{"steps":[{"step":"dedup","keep":"oldest"}]}`
	v = window(200_000).user(10).call("read", 5, sea(2000)).user(5).call("read", 5, sea(2000)).says(10)
	after, _ = v.prune(oldest, policy.Moment{})
	v.Edits, v.Messages = after.Edits, v.Messages[3:]
	after, edits = v.prune(oldest, policy.Moment{})
	if want := "[old result cleared: expand(id=6)]"; len(edits) != 1 || after.AsShown()[2].Content[0].Text != want {
		t.Errorf("after the copy left: %v", edits)
	}
}

// Of five previews of one data set the newest is shown; of two data sets, the newest of each.
func TestIdempotentCallsShowTheNewestState(t *testing.T) {
	t.Parallel()
	v := window(200_000).user(10)
	for i := range 5 {
		for _, set := range []string{"a", "b"} {
			v.calling("preview_data", fmt.Sprintf(`{"rows":%d,"dataset":%q}`, i, set), fmt.Sprint(set, i)+sea(1000))
			v.calling("read_file", `{"path":"a"}`, sea(1000))
		}
	}
	step := `{"steps":[{"step":"idempotent_calls","tools":["preview_*"],"key":["dataset"]}]}`
	after, edits := v.says(10).prune(step, policy.Moment{})
	if len(edits) != 8 || after.AsShown()[2].Content[0].Text != "[superseded: see seq 35: expand(id=3)]" {
		t.Errorf("%d superseded, want 4 of each data set: %s", len(edits), after.AsShown()[2].Content[0].Text)
	}
}
