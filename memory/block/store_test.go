package block_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/memory/block"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is a store, and an organization in the database that the package's tests share.
type world struct {
	*testing.T
	pool  *pgxpool.Pool
	org   db.Org
	store *block.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool, org := dbtest.Org(t)
	return &world{T: t, pool: pool, org: org, store: &block.Store{DB: pool}}
}

func (w *world) agent(blocks ...block.Block) string {
	w.Helper()
	id, err := db.One[string](w.Context(), w.pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, w.org)
	for _, b := range blocks {
		if err == nil {
			err = w.store.Attach(w.Context(), w.org, id, b.ID)
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) create(n block.New) block.Block {
	w.Helper()
	b, err := w.store.Create(w.Context(), w.org, block.OperatorAuthor, n)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func (w *world) events(agent string) []string {
	w.Helper()
	got, err := db.All[string](w.Context(), w.pool, `SELECT type FROM events WHERE agent_id = $1 ORDER BY seq`, agent)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func TestRulesOfABlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("é", 11)
	for _, tt := range []struct {
		name string
		n    block.New
		want string
	}{
		{"a label with a space", block.New{Label: "my self"}, `"my self"`},
		{"no label", block.New{}, "from 1 to 50"},
		{"a value beyond its limit", block.New{Label: "a", Value: long, Limit: 10},
			"Exceeds 10 character limit (requested 11)"},
		{"a limit of less than nothing", block.New{Label: "a", Limit: -1}, "is -1"},
	} {
		if _, err := w.store.Create(t.Context(), w.org, "me", tt.n); !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want ErrInvalid with %q", tt.name, err, tt.want)
		}
	}
	b := w.create(block.New{Label: "system/human-1_x", Value: long + "\x00", Limit: 12, Tags: []string{"t", "t"}})
	if b.Value != long+"␀" || b.Version != 1 || len(b.Tags) != 1 || b.Limit != 12 {
		t.Errorf("got %+v", b)
	}
	lower := 5
	if _, err := w.store.Update(t.Context(), w.org, block.Target{ID: b.ID, Author: "me"},
		block.Update{Limit: &lower}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a limit below the value: got %v, want ErrInvalid", err)
	}
}

func TestEachChangeIsAVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create(block.New{Label: "human", Value: "one\ntwo"})
	agent := w.agent(b)
	add := func(text string) func(string) (string, error) {
		return func(value string) (string, error) { return block.Append(value, text), nil }
	}
	if _, err := w.store.Edit(t.Context(), w.org, agent, "human", add("three")); err != nil {
		t.Fatal(err)
	}
	same := "one\ntwo\nthree"
	if got, err := w.store.Update(t.Context(), w.org, block.Target{ID: b.ID, Author: "op"},
		block.Update{Value: &same}); err != nil || got.Version != 2 {
		t.Errorf("what changes nothing: version %d, %v, want 2", got.Version, err)
	}
	restored, err := w.store.Restore(t.Context(), w.org, block.Target{ID: b.ID, Author: "op",
		Expected: block.Expected{Version: new(2)}}, 1)
	if err != nil || restored.Value != "one\ntwo" || restored.Version != 3 {
		t.Errorf("restored: got %+v, %v", restored, err)
	}
	versions, err := w.store.Versions(t.Context(), w.org, b.ID, 0, 10)
	var lines []string
	for _, v := range versions {
		lines = append(lines, fmt.Sprintf("%d by %s: %q", v.Version, strings.ReplaceAll(v.Author, agent, "agent"), v.Value))
	}
	want := []string{`3 by op: "one\ntwo"`, `2 by agent: "one\ntwo\nthree"`, `1 by operator: "one\ntwo"`}
	if diff := cmp.Diff(want, lines); diff != "" || err != nil {
		t.Errorf("versions, %v (-want +got):\n%s", err, diff)
	}
	diff, err := w.store.Diff(t.Context(), w.org, b.ID, 1, 2)
	if err != nil || !strings.Contains(diff, "+three") || !strings.Contains(diff, "human@1") {
		t.Errorf("diff: got %q, %v", diff, err)
	}
	if diff := cmp.Diff([]string{"block_attached", "block_changed", "block_changed"}, w.events(agent)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, err := w.store.Version(t.Context(), w.org, b.ID, 4); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a version that never was: got %v, want ErrNotFound", err)
	}
}

// A restored value has room, and a limit that was raised since then stays.
func TestARestoredVersionHasRoom(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"a lowered limit": 5, "a raised limit": 50} {
		w := newWorld(t)
		b := w.create(block.New{Label: "a", Value: "0123456789", Limit: 10})
		target, value := block.Target{ID: b.ID, Author: "op"}, "short"
		_, err := w.store.Update(t.Context(), w.org, target, block.Update{Value: &value, Limit: &limit})
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.store.Restore(t.Context(), w.org, target, 1)
		if want := max(limit, 10); err != nil || got.Value != "0123456789" || got.Limit != want {
			t.Errorf("%s: got %q with the limit %d, %v, want the limit %d", name, got.Value, got.Limit, err, want)
		}
	}
}

func TestAChangeThatExpectsAnotherBlockIsRefusedWithTheBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create(block.New{Label: "a", Value: "now"})
	value := "then"
	for name, x := range map[string]block.Expected{"version": {Version: new(7)},
		"hash": {SHA256: strings.Repeat("0", 64)}} {
		_, err := w.store.Update(t.Context(), w.org, block.Target{ID: b.ID, Author: "op", Expected: x},
			block.Update{Value: &value})
		mismatch, ok := errors.AsType[*block.MismatchError](err)
		if !ok || !errors.Is(err, db.ErrConflict) || mismatch.Current.Value != "now" {
			t.Errorf("%s: got %v, want a mismatch with the current value", name, err)
		}
	}
	if got, err := w.store.Update(t.Context(), w.org, block.Target{ID: b.ID, Author: "op",
		Expected: block.Expected{Version: new(1), SHA256: b.SHA256()}},
		block.Update{Value: &value}); err != nil || got.Value != "then" {
		t.Errorf("as expected: got %+v, %v", got, err)
	}
}

func TestAnAgentHasALabelOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.create(block.New{Label: "a/b", Value: "1"}), w.create(block.New{Label: "a/b", Value: "2"})
	agent := w.agent(one, one)
	if err := w.store.Attach(t.Context(), w.org, agent, two.ID); !errors.Is(err, db.ErrConflict) {
		t.Errorf("a second block of the label: got %v, want ErrConflict", err)
	}
	label := "c"
	if _, err := w.store.Update(t.Context(), w.org, block.Target{ID: one.ID, Author: "op"},
		block.Update{Label: &label}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Attach(t.Context(), w.org, agent, two.ID); err != nil {
		t.Errorf("after the first was renamed: %v", err)
	}
	if _, err := w.store.Update(t.Context(), w.org, block.Target{ID: two.ID, Author: "op"},
		block.Update{Label: &label}); !errors.Is(err, db.ErrConflict) {
		t.Errorf("renamed to what the agent has: got %v, want ErrConflict", err)
	}
	if got, err := w.store.Labelled(t.Context(), w.org, agent, "c"); err != nil || got.ID != one.ID {
		t.Errorf("by its new label: got %+v, %v", got, err)
	}
	if err := w.store.Delete(t.Context(), w.org, one.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := w.store.OfAgent(t.Context(), w.org, agent); err != nil || len(got) != 1 || got[0].ID != two.ID {
		t.Errorf("after the first was deleted: got %+v, %v", got, err)
	}
	if _, err := w.store.Labelled(t.Context(), w.org, agent, "c"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("deleted: got %v, want ErrNotFound", err)
	}
}

func TestAnAgentDoesNotChangeWhatItMayOnlyRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create(block.New{Label: "rules", Value: "1", ReadOnly: true})
	agent := w.agent(b)
	_, err := w.store.Edit(t.Context(), w.org, agent, "rules", func(string) (string, error) { return "2", nil })
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	value := "3"
	if got, err := w.store.Update(t.Context(), w.org, block.Target{ID: b.ID, Author: "op"},
		block.Update{Value: &value}); err != nil || got.Value != "3" {
		t.Errorf("the operator: got %+v, %v", got, err)
	}
}

// Two servers lose no edit of a block that many agents share. Here they are two stores with their own pools.
func TestWritersOfASharedBlockLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.create(block.New{Label: "log"})
	agents := []string{w.agent(b), w.agent(b), w.agent(b)}
	other, err := db.Connect(t.Context(), w.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stores := []*block.Store{w.store, {DB: other}}
	var group errgroup.Group
	group.SetLimit(8) // each has a connection
	for writer := range 64 {
		group.Go(func() error {
			_, err := stores[writer%2].Edit(t.Context(), w.org, agents[writer%3], "log", func(value string) (string, error) {
				return block.Append(value, fmt.Sprintf("writer %d.", writer)), nil
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := w.store.Block(t.Context(), w.org, b.ID)
	if err != nil || got.Version != 65 {
		t.Fatalf("version %d, %v, want 65", got.Version, err)
	}
	for writer := range 64 {
		if !strings.Contains(got.Value, fmt.Sprintf("writer %d.", writer)) {
			t.Errorf("the edit of writer %d is lost", writer)
		}
	}
	for _, agent := range agents {
		if n := len(w.events(agent)); n != 65 {
			t.Errorf("an agent has %d events, want its attachment and 64 changes", n)
		}
	}
}

func TestBlocksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	about := "About the Human"
	w.create(block.New{Label: "human", Value: "Ada likes tea", Description: &about, Tags: []string{"x"}})
	shared := w.create(block.New{Label: "persona", Value: "calm", Tags: []string{"x", "y"}})
	w.create(block.New{Label: "secret", Hidden: true})
	w.agent(shared)
	one, yes, no := 1, true, false
	for _, tt := range []struct {
		name string
		f    block.Filter
		want []string
	}{
		{"all but hidden ones", block.Filter{}, []string{"human", "persona"}},
		{"hidden ones too", block.Filter{Hidden: true}, []string{"human", "persona", "secret"}},
		{"a label", block.Filter{Label: "human"}, []string{"human"}},
		{"part of a value", block.Filter{ValueContains: "TEA"}, []string{"human"}},
		{"part of a description", block.Filter{DescriptContains: "human"}, []string{"human"}},
		{"any tag", block.Filter{Tags: []string{"y", "z"}}, []string{"persona"}},
		{"all tags", block.Filter{Tags: []string{"x", "y"}, AllTags: true}, []string{"persona"}},
		{"attached to one agent", block.Filter{Agents: []int{1}}, []string{"persona"}},
		{"attached to fewer", block.Filter{AgentsFewer: &one}, []string{"human"}},
		{"templates", block.Filter{Templates: &yes}, []string{}},
		{"no templates", block.Filter{Templates: &no}, []string{"human", "persona"}},
	} {
		list, err := w.store.List(t.Context(), w.org, tt.f, db.Page{Ascending: true})
		got := []string{}
		for _, b := range list {
			got = append(got, b.Label)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		if n, err := w.store.Count(t.Context(), w.org, tt.f); err != nil || n != len(tt.want) {
			t.Errorf("%s: counted %d, %v, want %d", tt.name, n, err, len(tt.want))
		}
	}
}

// A patch for several blocks is applied completely or not at all.
func TestAPatchIsAtomic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, rules := w.create(block.New{Label: "one", Value: "a\nb"}), w.create(block.New{Label: "rules", Value: "r",
		ReadOnly: true})
	agent := w.agent(one, rules)
	state := func() string {
		t.Helper()
		all, err := w.store.OfAgent(t.Context(), w.org, agent)
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, b := range all {
			values = append(values, b.Label+"="+b.Value)
		}
		return strings.Join(values, "; ")
	}
	for _, tt := range []struct{ name, patch, wrong, want string }{
		{"the last part fails", "*** Add Block: two\n+x\n*** Update Block: one\n-a\n+A\n*** Update Block: one\n-gone\n+come",
			"not found", "one=a\nb; rules=r"},
		{"a block that is not there", "*** Update Block: none\n-a\n+A", "available sections = one, rules",
			"one=a\nb; rules=r"},
		{"a label that is there", "*** Add Block: one\n+x", "another block", "one=a\nb; rules=r"},
		{"what may only be read is deleted", "*** Delete Block: rules", "read-only", "one=a\nb; rules=r"},
		{"what may only be read is renamed", "*** Update Block: rules\n*** Move to: other", "read-only", "one=a\nb; rules=r"},
		{"all of it", "*** Update Block: one\n*** Move to: first\n-a\n+A\n*** Add Block: two\n+x\n*** Update Block: " +
			"first\n-b\n+B", "", "first=A\nB; rules=r; two=x"},
		{"a deletion", "*** Delete Block: two", "", "first=A\nB; rules=r"},
	} {
		p, err := block.ParsePatch("", tt.patch)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.store.Apply(t.Context(), w.org, agent, p)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.wrong)
		}
		if got := state(); got != tt.want {
			t.Errorf("%s: the blocks are %q, want %q", tt.name, got, tt.want)
		}
	}
}
