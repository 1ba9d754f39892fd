package search_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an agent with its memories, which rank by words alone.
type fixture struct {
	testing.TB
	search.Memories
	org   db.Org
	agent agent.Agent
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	store, err := files.New(pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, org: org, Memories: search.Memories{Files: store, Recall: recall.New(pool, recall.Options{}),
		Blocks: &block.Store{DB: pool}, Archival: archival.New(pool, archival.Options{}),
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{})}}
	f.Working = &working.Store{DB: pool, Recall: f.Recall, Files: store}
	f.agent.ID, err = db.One[string](t.Context(), pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, org)
	f.must(err)
	f.must(f.Recall.Begin(t.Context(), org, f.agent.ID, "Begin."))
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) say(conversation string, texts ...string) {
	f.Helper()
	var drafts []recall.Draft
	for _, text := range texts {
		drafts = append(drafts, recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text}}})
	}
	_, err := f.Recall.Append(f.Context(), f.org, f.agent.ID, conversation, drafts)
	f.must(err)
}

// remember stores a text with the word zebra in each memory but files.
func (f *fixture) remember() {
	f.Helper()
	ctx := f.Context()
	b, err := f.Blocks.Create(ctx, f.org, "test", block.New{Label: "human", Value: "Likes tea.\nOwns a zebra."})
	f.must(err)
	f.must(f.Blocks.Attach(ctx, f.org, f.agent.ID, b.ID))
	tree, err := f.MemoryFiles.CreateTree(ctx, f.org, "t", memoryfile.TreeUpdate{})
	f.must(err)
	f.must(f.MemoryFiles.Attach(ctx, f.org, f.agent.ID, tree.ID, false))
	_, err = f.MemoryFiles.Create(ctx, memoryfile.At{Org: f.org, Tree: tree.ID}, "/memories/zoo.md", "The zebra's vet\n",
		memoryfile.Dates{})
	f.must(err)
	_, err = f.Archival.InsertFor(ctx, f.org, archival.Of(f.agent.ID),
		[]archival.Draft{{Text: "The zebra lives in Berlin."}})
	f.must(err)
	f.say(recall.DefaultConversation, "Feed the zebra at noon.")
	_, err = f.Working.Change(ctx, f.org, working.Target{AgentID: f.agent.ID, Conversation: recall.DefaultConversation,
		Author: working.Author{Kind: working.ByOperator}}, []working.Change{{Field: working.Task, Text: "Move the zebra"}})
	f.must(err)
}

func (f *fixture) found(q search.Query) search.Results {
	f.Helper()
	q.Org, q.Agent = f.org, f.agent
	r, err := f.Search(f.Context(), q)
	f.must(err)
	return r
}

func kindsOf(hits []search.MemoryFound) (all []search.Kind) {
	for _, h := range hits {
		all = append(all, h.Kind)
	}
	order := func(k search.Kind) int { return slices.Index(search.Kinds, k) }
	slices.SortFunc(all, func(a, b search.Kind) int { return order(a) - order(b) })
	return slices.Compact(all)
}

func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		name    string
		q       search.Query
		refused bool
	}{
		{"no text", search.Query{}, true},
		{"only space", search.Query{Text: " \n\t"}, true},
		{"the longest", search.Query{Text: strings.Repeat("ä", rank.MaxQueryChars), Limit: 1}, false},
		{"longer", search.Query{Text: strings.Repeat("ä", rank.MaxQueryChars+1), Limit: 1}, true},
		{"an unknown kind", search.Query{Text: "zebra", Kinds: []search.Kind{search.Block, "dream"}}, true},
	} {
		c.q.Org, c.q.Agent = f.org, f.agent
		if _, err := f.Search(t.Context(), c.q); errors.Is(err, db.ErrInvalid) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: got %v, refused should be %v", c.name, err, c.refused)
		}
	}
}

// A limit below 1 is 1, and one above 50 is 50.
func TestTheLimitOfASearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var drafts []archival.Draft
	for i := range 60 {
		drafts = append(drafts, archival.Draft{Text: fmt.Sprint("The zebra ", i)})
	}
	_, err := f.Archival.InsertFor(t.Context(), f.org, archival.Of(f.agent.ID), drafts)
	f.must(err)
	for limit, want := range map[int]int{-1: 1, 0: 1, 7: 7, 50: 50, 51: 50} {
		if got := f.found(search.Query{Text: "zebra", Limit: limit}).Hits; len(got) != want {
			t.Errorf("limit %d: got %d hits, want %d", limit, len(got), want)
		}
	}
}

// All memories are searched, or those of the kinds. A query by meaning leaves out those without vectors.
func TestKindsOfASearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.remember()
	all := []search.Kind{search.WorkingMemory, search.Block, search.MemoryFile, search.Passage, search.Message}
	for _, c := range []struct {
		name string
		q    search.Query
		want []search.Kind
	}{
		{"all", search.Query{Text: "zebra"}, all},
		{"two of them", search.Query{Text: "zebra", Kinds: []search.Kind{search.Message, search.Block}},
			[]search.Kind{search.Block, search.Message}},
		{"one without a hit", search.Query{Text: "zebra", Kinds: []search.Kind{search.File}}, nil},
		{"a word that nothing has", search.Query{Text: "giraffe", AsWritten: true}, nil},
	} {
		c.q.Limit = 20
		if got := kindsOf(f.found(c.q).Hits); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A hit names a tool call that reads on, if the agent has the tool.
func TestHitsNameACallOfTheAgent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.remember()
	for tools, want := range map[string]map[search.Kind]string{
		"": {},
		"expand memory archival_memory_search": {search.WorkingMemory: "expand", search.MemoryFile: "memory",
			search.Passage: "archival_memory_search", search.Message: "expand"},
		"expand memory memory_files conversation_search": {search.WorkingMemory: "expand",
			search.MemoryFile: "memory_files", search.Message: "conversation_search"},
	} {
		f.agent.Settings.Tools = append([]string{}, strings.Fields(tools)...)
		for _, h := range f.found(search.Query{Text: "zebra", Limit: 20}).Hits {
			got := ""
			if h.Call != nil {
				got = h.Call.Tool
			}
			if got != want[h.Kind] {
				t.Errorf("with the tools %q, a %s is read by %q, want %q", tools, h.Kind, got, want[h.Kind])
			}
		}
	}
}

// A confined search finds messages and working memory of its conversation only.
func TestAConfinedSearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.remember()
	other, err := f.Recall.CreateConversation(t.Context(), f.org, f.agent.ID, recall.NewConversation{})
	f.must(err)
	kinds := []search.Kind{search.WorkingMemory, search.Message}
	for _, c := range []struct {
		name string
		q    search.Query
		want []search.Kind
	}{
		{"confined to its own", search.Query{Conversation: recall.DefaultConversation, Confined: true}, kinds},
		{"confined to another", search.Query{Conversation: other.ID, Confined: true}, nil},
		{"asked from another", search.Query{Conversation: other.ID}, kinds},
	} {
		c.q.Text, c.q.Kinds, c.q.Limit = "zebra", kinds, 20
		if got := kindsOf(f.found(c.q).Hits); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The result says which near place has the answer. A search that finds nothing for its words takes a similar spelling.
func TestWhatASearchSaysOfItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.remember()
	if got := f.found(search.Query{Text: "owns zebra", Limit: 5}); got.Known != "human" || got.Meaning {
		t.Errorf("got %q by meaning %v, want the block's label by words", got.Known, got.Meaning)
	}
	if got := f.found(search.Query{Text: "zebra Berlin", Limit: 5}); got.Known != "" || got.SearchedFor != "" {
		t.Errorf("got %q for %q, want no near place", got.Known, got.SearchedFor)
	}
	if got := f.found(search.Query{Text: "zebar", Limit: 5}); got.SearchedFor != "zebra" || len(got.Hits) == 0 {
		t.Errorf("misspelled: searched for %q, with %d hits", got.SearchedFor, len(got.Hits))
	}
	if got := f.found(search.Query{Text: "zebar", Limit: 5, AsWritten: true}); got.SearchedFor != "" ||
		len(got.Hits) != 0 {
		t.Errorf("as written: searched for %q, with %d hits", got.SearchedFor, len(got.Hits))
	}
}
