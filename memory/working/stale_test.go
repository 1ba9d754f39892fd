package working_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// rests returns a decision with evidence.
func rests(text, evidence string) working.Change {
	return working.Change{Field: working.Decisions, Text: text, Evidence: evidence}
}

// staleSince returns since which position the first decision is stale, or 0.
func staleSince(m working.Memory) int64 {
	if m.Decisions[0].Stale == nil {
		return 0
	}
	return *m.Decisions[0].Stale
}

// An entry based on a call is stale once the same call has another result, until it has the old result again. It is
// stale since the first other result.
func TestAnotherResultOfACallContradictsAnEntry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.call("bash", `{"command":"pytest -q","timeout":9}`, "2 passed")
	m := f.change(rests("Tests run with pytest", "pytest -q"))
	if e := m.Decisions[0]; e.Seq != first || e.Evidence == nil || e.Evidence.Name != "bash" {
		t.Fatalf("the entry rests on %+v at %d, want the call of bash at %d", e.Evidence, e.Seq, first)
	}
	for _, w := range []struct {
		name, tool, args, result string
		stale                    bool
	}{
		{"the same", "bash", `{"timeout":9,  "command":"pytest -q"}`, "2 passed", false},
		{"another tool", "zsh", `{"command":"pytest -q","timeout":9}`, "no pytest", false},
		{"other arguments", "bash", `{"command":"pytest"}`, "no pytest", false},
	} {
		f.call(w.tool, w.args, w.result)
		if got := staleSince(f.refreshed()); got != 0 {
			t.Errorf("%s: stale since %d", w.name, got)
		}
	}
	since := f.call("bash", `{"command":"pytest -q","timeout":9}`, "no module named pytest")
	f.call("bash", `{"command":"pytest -q","timeout":9}`, "no such file")
	m = f.refreshed()
	if got := staleSince(m); got != since {
		t.Errorf("stale since %d, want %d", got, since)
	}
	if want := fmt.Sprintf("- [seq %d, stale since seq %d] Tests run", first, since); !strings.Contains(m.Text, want) {
		t.Errorf("the prompt lacks %q: %s", want, m.Text)
	}
	if m.Version != 1 {
		t.Errorf("a mark made version %d", m.Version)
	}
	f.call("bash", `{"command":"pytest -q","timeout":9}`, "2 passed")
	if m := f.refreshed(); staleSince(m) != 0 || strings.Contains(m.Text, "stale") {
		t.Errorf("after the old result: %s", m.Text)
	}
}

// A result that comes many messages later still counts. An error differs from the same text without an error. A long
// result is compared completely.
func TestLateAndLongResultsCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	long := strings.Repeat("line\n", recall.MaxResultChars/5+10)
	f.call("read", `{"path":"a.go"}`, long+"one")
	f.change(rests("a.go ends with one", "a.go"))
	if got := staleSince(f.refreshed()); got != 0 {
		t.Errorf("stale since %d at once", got)
	}
	f.say(said(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: "late", Name: "read",
		Input: `{"path":"a.go"}`}))
	for range 12 {
		f.refreshed()
		f.say(said(recall.Assistant, recall.Part{Type: recall.Text, Text: "I wait."}))
	}
	since := f.say(said(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: "late", Text: long + "two"}))[0].Seq
	if got := staleSince(f.refreshed()); got != since {
		t.Errorf("stale since %d, want %d", got, since)
	}
}

// A result counts although its call is the last of the messages that are read at a time.
func TestAResultOnTheNextPageCounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.call("bash", `{"command":"ls"}`, "a")
	f.change(rests("There is only a", "ls"))
	filler := func(n int) {
		drafts := make([]recall.Draft, n)
		for i := range drafts {
			drafts[i] = said(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprint(i)})
		}
		f.say(drafts...)
	}
	const atOnce = 200 // messages that are read at a time, the first behind the entry's evidence
	filler(atOnce - 1)
	since := f.call("bash", `{"command":"ls"}`, "b")
	filler(2 * atOnce)
	if got := staleSince(f.refreshed()); got != since {
		t.Errorf("stale since %d, want %d", got, since)
	}
}

// A call that never gets a result hides no other call's.
func TestACallWithoutAResultHidesNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.call("bash", `{"command":"ls"}`, "a")
	f.change(rests("There is only a", "ls"))
	call := func(id, command string) recall.Draft {
		return said(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: "bash",
			Input: `{"command":"` + command + `"}`})
	}
	filler := make([]recall.Draft, 150)
	for i := range filler {
		filler[i] = said(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprint(i)})
	}
	f.say(call("never", "sleep"))
	f.say(filler...)
	f.say(call("late", "ls"))
	f.say(filler[:60]...)
	f.say(said(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: "late", Text: "b"}))
	if got := staleSince(f.refreshed()); got == 0 {
		t.Error("the entry is not stale")
	}
}

// An entry may be based on an old message. Later results count at once. A changed entry is based on its new evidence.
func TestEvidenceMayBeOld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.call("bash", `{"command":"ls"}`, "a")
	since := f.call("bash", `{"command":"ls"}`, "b")
	for i := range 450 {
		f.say(said(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprint(i)}))
	}
	f.change(rests("There is only a", fmt.Sprintf("[seq %d]", old)))
	if got := staleSince(f.refreshed()); got != since {
		t.Errorf("stale since %d, want %d", got, since)
	}
	f.change(rests("There is only a", fmt.Sprint(since)))
	if got := staleSince(f.refreshed()); got != 0 {
		t.Errorf("stale since %d after the entry got new evidence", got)
	}
}

// An entry based on a file in the agent's folders is stale once the file has another content or is gone.
func TestAnotherFileContradictsAnEntry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	folder, err := f.store.Files.CreateFolder(t.Context(), f.org, files.NewFolder{Name: "docs"})
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if err := db.Exec(t.Context(), f.pool, sql, append([]any{f.org}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO agent_folders (org, agent_id, folder_key) VALUES ($1, $2, $3)`, f.agent, folder.Key)
	exec(`INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation)
		VALUES ($1, $2, 'a/plan.md', 'plan.md', 'text/plain', 0, '\x01', 1)`, folder.Key)
	m := f.change(add(working.ImportantFiles, "docs/a/plan.md"), add(working.ImportantFiles, "docs/none.md"))
	if e := m.ImportantFiles[0].Evidence; e == nil || e.Kind != working.OfFile || e.SHA256 != "01" {
		t.Fatalf("the file rests on %+v, want its hash", e)
	}
	stale := func() bool { return f.refreshed().ImportantFiles[0].Stale != nil }
	if stale() {
		t.Error("stale at once")
	}
	exec(`UPDATE files SET sha256 = '\x02' WHERE org = $1`)
	if !stale() {
		t.Error("not stale when the file has another content")
	}
	since := *f.refreshed().ImportantFiles[0].Stale
	f.say(said(recall.User, recall.Part{Type: recall.Text, Text: "Go on."}))
	if again := *f.refreshed().ImportantFiles[0].Stale; again != since {
		t.Errorf("stale since %d, later since %d", since, again)
	}
	exec(`UPDATE files SET sha256 = '\x01' WHERE org = $1`)
	if stale() {
		t.Error("stale although the file is the old one")
	}
	exec(`DELETE FROM files WHERE org = $1`)
	if m := f.refreshed(); m.ImportantFiles[0].Stale == nil || m.ImportantFiles[1].Stale != nil {
		t.Errorf("after the deletion: %s", m.Text)
	}
}

// When an earlier version is restored, its evidence is compared again.
func TestARestoredEntryMayBeStale(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.call("bash", `{"command":"ls"}`, "a")
	f.change(rests("There is only a", "ls"))
	f.change(working.Change{Field: working.Decisions, Action: working.Remove, Text: "There is only a"})
	since := f.call("bash", `{"command":"ls"}`, "b")
	f.refreshed()
	if _, err := f.store.Restore(t.Context(), f.org, f.target(0), 1); err != nil {
		t.Fatal(err)
	}
	if got := staleSince(f.refreshed()); got != since {
		t.Errorf("stale since %d, want %d", got, since)
	}
}
