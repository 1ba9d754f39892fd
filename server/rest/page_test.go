package rest_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

func TestPageTakesTheListsOwnLimitAndOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		paging rest.Paging
		want   db.Page
	}{
		{"nothing asked for", rest.Paging{}, db.Page{Limit: 50}},
		{"a limit", rest.Paging{Limit: rest.Limit{Set: true, Value: 3}}, db.Page{Limit: 3}},
		{"no items", rest.Paging{Limit: rest.Limit{Set: true}}, db.Page{Limit: db.NoItems}},
		{"too many", rest.Paging{Limit: rest.Limit{Set: true, Value: 5000}}, db.Page{Limit: 1000}},
		{"an order", rest.Paging{Order: "asc"}, db.Page{Limit: 50, Ascending: true}},
		{"cursors", rest.Paging{After: "a", Before: "b"}, db.Page{Limit: 50, After: "a", Before: "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.paging.Page(50, "desc"); got != c.want {
				t.Errorf("%+v: got %+v, want %+v", c.paging, got, c.want)
			}
		})
	}
}

// A client that continues after the last item's cursor sees each item once, in the requested order, and then an empty
// page.
func TestPagesFollowOneAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]{1,3}"), 0, 20, rapid.ID[string]).Draw(t, "list")
		page := db.Page{Limit: rapid.IntRange(1, 7).Draw(t, "limit"), Ascending: rapid.Bool().Draw(t, "ascending")}
		want := slices.Clone(list)
		if !page.Ascending {
			slices.Reverse(want)
		}
		var forth []string
		for {
			got := rest.Paged(list, page, rapid.ID[string])
			if len(got) == 0 {
				break
			}
			forth = append(forth, got...)
			page.After = got[len(got)-1]
		}
		if !slices.Equal(forth, want) {
			t.Fatalf("forwards: got %q, want %q", forth, want)
		}
		var back []string
		for page.After, page.Before = "", lastOf(want); page.Before != ""; {
			got := rest.Paged(list, page, rapid.ID[string])
			back = append(slices.Clone(got), back...)
			page.Before = ""
			if len(got) > 0 {
				page.Before = got[0]
			}
		}
		if n := max(len(want)-1, 0); !slices.Equal(back, want[:n]) {
			t.Fatalf("backwards: got %q, want %q", back, want[:n])
		}
	})
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func TestAnUnknownCursorGivesAnEmptyPage(t *testing.T) {
	t.Parallel()
	for _, page := range []db.Page{{Limit: 5, After: "x"}, {Limit: 5, Before: "x"}, {Limit: 5, After: "x", Before: "a"}} {
		if got := rest.Paged([]string{"a", "b"}, page, rapid.ID[string]); len(got) != 0 || got == nil {
			t.Errorf("%+v: got %q, want an empty list", page, got)
		}
	}
}
