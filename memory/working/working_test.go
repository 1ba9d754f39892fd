package working_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an agent with its default conversation and working memories, in an organization of the database that the
// package's tests share.
type fixture struct {
	testing.TB
	pool  *pgxpool.Pool
	org   db.Org
	store *working.Store
	agent string
	calls int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	store, err := files.New(pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := recall.New(pool, recall.Options{})
	f := &fixture{TB: t, pool: pool, org: org, store: &working.Store{DB: pool, Recall: said, Files: store}}
	f.agent, err = db.One[string](t.Context(), pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, org)
	if err != nil {
		t.Fatal(err)
	}
	if err := said.Begin(t.Context(), org, f.agent, "Begin."); err != nil {
		t.Fatal(err)
	}
	return f
}

// target returns the agent's record as a target, with an expected version; 0 is any.
func (f *fixture) target(expected int) working.Target {
	t := working.Target{AgentID: f.agent, Conversation: recall.DefaultConversation,
		Author: working.Author{Kind: working.ByOperator}}
	if expected > 0 {
		t.Expected = &expected
	}
	return t
}

// change makes changes that must succeed.
func (f *fixture) change(changes ...working.Change) working.Memory {
	f.Helper()
	m, err := f.store.Change(f.Context(), f.org, f.target(0), changes)
	if err != nil {
		f.Fatal(err)
	}
	return m
}

func (f *fixture) conversation() recall.Conversation {
	f.Helper()
	c, err := f.store.Recall.Conversation(f.Context(), f.org, f.agent, recall.DefaultConversation)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// refreshed returns the record after a refresh of its marks.
func (f *fixture) refreshed() working.Memory {
	f.Helper()
	c := f.conversation()
	if err := f.store.Refresh(f.Context(), f.org, c); err != nil {
		f.Fatal(err)
	}
	m, err := f.store.Memory(f.Context(), f.org, c)
	if err != nil {
		f.Fatal(err)
	}
	return m
}

func (f *fixture) say(drafts ...recall.Draft) []recall.Appended {
	f.Helper()
	at, err := f.store.Recall.Append(f.Context(), f.org, f.agent, recall.DefaultConversation, drafts)
	if err != nil {
		f.Fatal(err)
	}
	return at
}

func said(role recall.Role, parts ...recall.Part) recall.Draft {
	return recall.Draft{Role: role, Content: parts}
}

// call appends a tool call and its result. It returns the position of the result.
func (f *fixture) call(tool, args, result string) int64 {
	f.Helper()
	f.calls++
	id := fmt.Sprint("call-", f.calls)
	return f.say(said(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: tool, Input: args}),
		said(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: id, Text: result}))[1].Seq
}

func add(f working.Field, text string) working.Change { return working.Change{Field: f, Text: text} }

func TestARecordIsChangedAndShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seq := f.say(said(recall.User, recall.Part{Type: recall.Text, Text: "Make it so."}))[0].Seq
	m := f.change(add(working.Task, "Make it so"), add(working.ImportantFiles, "a.go"),
		add(working.ImportantFiles, "b.go"), add(working.ImportantFiles, "a.go"), add(working.Decisions, "Few globals"),
		add(working.LastEdit, " context\n-old\n+new\n"))
	want := strings.ReplaceAll(`<working_memory>
task: [seq N] Make it so
important_files:
- [seq N] b.go
- [seq N] a.go
decisions:
- [seq N] Few globals
last_edit: [seq N]
<last_edit>
 context
-old
+new
</last_edit>
</working_memory>`, "N", fmt.Sprint(seq))
	if m.Text != want || m.Version != 1 || m.Tokens != working.Size(m.Record) || m.Tokens < 30 {
		t.Errorf("got version %d, %d tokens: %s\nwant %s", m.Version, m.Tokens, m.Text, want)
	}
	m = f.change(working.Change{Field: working.Decisions, Action: working.Set, Old: "Few globals", Text: "One global"},
		working.Change{Field: working.Task, Action: working.Remove},
		working.Change{Field: working.ImportantFiles, Action: working.Remove, Text: "b.go"})
	if m.Task != nil || len(m.ImportantFiles) != 1 || m.Decisions[0].Text != "One global" || m.Version != 2 {
		t.Errorf("changed: got version %d: %s", m.Version, m.Text)
	}
	if m = f.change(add(working.Decisions, "One global")); m.Version != 2 {
		t.Errorf("a change that changes nothing made version %d", m.Version)
	}
	log, err := event.List(t.Context(), f.pool, f.org, f.agent, event.Query{
		Types: []event.Type{event.WorkingMemoryChanged}})
	if err != nil || len(log) != 2 || log[0].RefID != f.conversation().ID {
		t.Errorf("events: got %+v, %v, want one for each version", log, err)
	}
}

// A change that breaks a rule changes nothing. The error says what to do.
func TestChangesThatBreakRulesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var seven []working.Change
	for i := range working.MaxImportant {
		seven = append(seven, add(working.ImportantFiles, fmt.Sprintf("src/%d.go", i)))
	}
	f.change(append(seven, add(working.Task, "Ship"))...)
	for _, w := range []struct {
		name   string
		change working.Change
		says   string
	}{
		{"an unknown field", add("plan", "x"), "its fields are task, important_files"},
		{"an unknown action", working.Change{Field: working.Task, Action: "push", Text: "x"}, "add, set and remove"},
		{"no text", add(working.Task, " \n"), "has no text"},
		{"two lines", add(working.Decisions, "a\nb"), "is one line"},
		{"a stray line end", add(working.Decisions, "a\u2028b"), "is one line"},
		{"an eighth file", add(working.ImportantFiles, "src/8.go"), "the most that it may have: src/0.go, src/1.go"},
		{"no such entry", working.Change{Field: working.ImportantFiles, Action: working.Remove, Text: "x.go"},
			`has no entry "x.go"; nothing was changed. Its entries are: "src/0.go"`},
		{"set without old", working.Change{Field: working.Decisions, Action: working.Set, Text: "x"}, "give the entry"},
		{"no such evidence", working.Change{Field: working.Decisions, Text: "x", Evidence: "pytest"}, `no evidence "pytest"`},
		{"no such position", working.Change{Field: working.Decisions, Text: "x", Evidence: "999"}, `no evidence "999"`},
		{"a long diff", add(working.LastEdit, strings.Repeat("+ a line of a long diff\n", 100)), "may have at most 400"},
	} {
		_, err := f.store.Change(t.Context(), f.org, f.target(0), []working.Change{add(working.Next, "never"), w.change})
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), w.says) {
			t.Errorf("%s: got %v, want %q", w.name, err, w.says)
		}
	}
	if _, err := f.store.Change(t.Context(), f.org, f.target(0), nil); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("no changes: got %v, want ErrInvalid", err)
	}
	if m := f.refreshed(); m.Version != 1 || m.Next != nil {
		t.Errorf("got version %d with next %v, want the first one", m.Version, m.Next)
	}
}

// A record may have 1,500 tokens. A change that exceeds them is refused, and the error names the largest fields. A
// change that makes a too large record smaller is accepted.
func TestARecordHasALimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	size := 0
	for i := 0; ; i++ {
		m, err := f.store.Change(t.Context(), f.org, f.target(0), []working.Change{
			add(working.Decisions, fmt.Sprintf("Decision %d: %s", i, strings.Repeat("as we said before ", 8)))})
		if err == nil {
			size = m.Tokens
			continue
		}
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "it may have at most 1500") ||
			!strings.Contains(err.Error(), "decisions (") {
			t.Errorf("got %v, want the limit and the largest field", err)
		}
		break
	}
	if size <= working.HealthyTokens || size > working.MaxTokens {
		t.Errorf("the record has %d tokens when it is full", size)
	}
	m := f.change(working.Change{Field: working.Decisions, Action: working.Remove,
		Text: f.refreshed().Decisions[0].Text})
	if m.Tokens >= size {
		t.Errorf("the record has %d tokens after a removal, %d before", m.Tokens, size)
	}
	if est := tokens.Estimate(m.Text); est != m.Tokens {
		t.Errorf("the prompt's text has %d tokens, the record says %d", est, m.Tokens)
	}
}

// No text can end the section or look like an entry. An entry can be removed by what a prompt shows of it.
func TestWhatIsShownCanBePasted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fragments := rapid.SampledFrom([]string{"</working_memory>", "<working_memory>", "</last_edit>", "[seq 3]", "[~seq 3]",
		"- [seq 4, stale since seq 9] ", "<~/value>", "</value>", "~", "[", "<", " ", "a word", "decisions:", "- ", "task: "})
	rapid.Check(t, func(rt *rapid.T) {
		field := rapid.SampledFrom([]working.Field{working.Decisions, working.Blockers, working.Task}).Draw(rt, "field")
		text := strings.TrimSpace(strings.Join(rapid.SliceOfN(fragments, 1, 6).Draw(rt, "text"), ""))
		if text == "" {
			return
		}
		m := f.change(add(field, text), add(working.Next, "stays"))
		if n := strings.Count(m.Text, "working_memory>") - strings.Count(m.Text, "<~/working_memory>") -
			strings.Count(m.Text, "<~working_memory>") - strings.Count(m.Text, "<~~"); n > 2 {
			rt.Fatalf("%q closes the section: %s", text, m.Text)
		}
		var shown string
		for line := range strings.SplitSeq(m.Text, "\n") {
			if strings.HasPrefix(line, "- [seq") || strings.HasPrefix(line, "task: [seq") {
				shown = line
			}
		}
		_, label, _ := strings.Cut(shown, "[seq")
		pasted := rapid.SampledFrom([]string{shown, "[seq" + label}).Draw(rt, "pasted")
		m = f.change(working.Change{Field: field, Action: working.Remove, Text: pasted, Pasted: true})
		if len(m.Entries(field)) != 0 {
			rt.Fatalf("%q did not remove %q: %s", pasted, text, m.Text)
		}
	})
}

// Two servers that change a record at the same time lose no change.
func TestTwoServersLoseNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other, err := pgxpool.NewWithConfig(t.Context(), f.pool.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	store, err := files.New(other, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stores := []*working.Store{f.store, {DB: other, Recall: recall.New(other, recall.Options{}), Files: store}}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 5 {
				change := add(working.Blockers, fmt.Sprintf("blocker %d of %d", n, i))
				if _, err := stores[i%2].Change(t.Context(), f.org, f.target(0), []working.Change{change}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if m := f.refreshed(); len(m.Blockers) != 40 || m.Version != 40 {
		t.Errorf("%d blockers after 40 changes, version %d", len(m.Blockers), m.Version)
	}
	var conflicts, made sync.Map
	for i := range 8 {
		all.Go(func() {
			_, err := stores[i%2].Change(t.Context(), f.org, f.target(40), []working.Change{add(working.Task, fmt.Sprint(i))})
			if mismatch, ok := errors.AsType[*working.MismatchError](err); ok && mismatch.Current.Version == 41 {
				conflicts.Store(i, true)
			} else if err == nil {
				made.Store(i, true)
			}
		})
	}
	all.Wait()
	if c, m := count(&conflicts), count(&made); c != 7 || m != 1 {
		t.Errorf("%d of 8 changes that expect version 40 are conflicts and %d are made, want 7 and 1", c, m)
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestVersionsAreComparedAndRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.change(add(working.Task, "One"), add(working.Decisions, "A"))
	f.change(add(working.Task, "Two"))
	c := f.conversation()
	list, err := f.store.Versions(t.Context(), f.org, c, 0, 10)
	if err != nil || len(list) != 2 || list[0].Version != 2 || list[1].Record.Task.Text != "One" ||
		list[0].Author.Kind != working.ByOperator || list[0].Tokens == 0 || list[0].Seq <= list[1].Seq {
		t.Fatalf("versions: got %+v, %v", list, err)
	}
	diff, err := f.store.Diff(t.Context(), f.org, c, 1, 2)
	if err != nil || !strings.Contains(diff, "-task: ") || !strings.Contains(diff, "] Two\n") {
		t.Errorf("diff: got %s, %v", diff, err)
	}
	if diff, err := f.store.Diff(t.Context(), f.org, c, 0, 1); err != nil || strings.Contains(diff, "\n-") {
		t.Errorf("diff from nothing: got %s, %v", diff, err)
	}
	m, err := f.store.Restore(t.Context(), f.org, f.target(2), 1)
	if err != nil || m.Version != 3 || m.Task.Text != "One" {
		t.Errorf("restored: got %+v, %v", m, err)
	}
	if _, err := f.store.Restore(t.Context(), f.org, f.target(0), 9); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("restore of version 9: got %v, want ErrNotFound", err)
	}
}
