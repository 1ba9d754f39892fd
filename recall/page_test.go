package recall_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// The pages of a search together have the same hits as one search without pages.
func TestPagesOfASearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 17 {
		f.append(say([]recall.Role{recall.User, recall.Assistant}[i%2], fmt.Sprintf("apple %d", i)))
	}
	for _, q := range []recall.Query{
		{Text: "apple", AgentID: f.agent},
		{Text: "apple 7", AgentID: f.agent, Roles: []recall.Role{recall.User}},
		{AgentID: f.agent},
	} {
		q.Limit = recall.SearchMax
		want := ids(f.search(q))
		if len(want) < 9 {
			t.Fatalf("%+v finds only %d messages", q, len(want))
		}
		q.Limit = 4
		byOffset, byID := f.pages(q)
		for name, got := range map[string][]string{"offset": byOffset, "after": byID} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v by %s (-at once +pages):\n%s", q, name, diff)
			}
		}
		q.After, q.Offset = "", 100
		if got := f.search(q); len(got.Hits) != 0 || got.More {
			t.Errorf("%+v past the end: %+v", q, got)
		}
		q.After = "message-123e4567-e89b-42d3-8456-426614174000"
		if _, err := f.store.Search(t.Context(), f.org, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("after a message that does not exist: got %v, want ErrInvalid", err)
		}
	}
}

// All pages come from the same ranking, although neighbors change scores, and the index of words could read fewer
// messages for the first pages.
func TestPagesThroughTheIndexOfWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.SetWordRows(100, 50)
	var drafts []recall.Draft
	random, words := rand.New(rand.NewPCG(1, 2)), strings.Fields("ship harbor pizza "+
		"engine storm ledger quartz violin tunnel meadow copper signal lantern bridge orchard")
	for i := range scale.Of(1200, 3000) {
		text := make([]string, 8)
		for n := range text {
			text[n] = words[random.IntN(len(words))]
		}
		role := []recall.Role{recall.User, recall.Assistant}[i%2]
		drafts = append(drafts, say(role, fmt.Sprint(strings.Join(text, " "), " msg", i)))
	}
	f.append(drafts...)
	if n, err := f.store.IndexWords(t.Context()); err != nil || n == 0 {
		t.Fatalf("%d segments, %v", n, err)
	}
	for _, word := range words[:scale.Of(3, 5)] {
		for _, role := range []recall.Role{recall.User, recall.Assistant} {
			f.pagesAgree(recall.Query{Text: word, AgentID: f.agent, Roles: []recall.Role{role}, Limit: recall.SearchMax,
				Mode: recall.ByWords})
		}
	}
}

// pagesAgree checks that pages by offset and pages by the last id have the same messages, each once.
func (f *fixture) pagesAgree(q recall.Query) {
	f.Helper()
	byOffset, byID := f.pages(q)
	if diff := cmp.Diff(byID, byOffset); diff != "" || len(byID) < 100 {
		f.Errorf("%s of %s: %d messages (-after +offset):\n%s", q.Text, q.Roles, len(byID), diff)
	}
}

// pages returns the messages on all pages of a search, once read by offset and once by the last id of the page before.
func (f *fixture) pages(q recall.Query) (byOffset, byID []string) {
	f.Helper()
	for more := true; more; q.Offset += q.Limit {
		found := f.search(q)
		byOffset, more = append(byOffset, ids(found)...), found.More
	}
	q.Offset = 0
	for more := true; more; q.After = byID[len(byID)-1] {
		found := f.search(q)
		byID, more = append(byID, ids(found)...), found.More
	}
	return byOffset, byID
}
