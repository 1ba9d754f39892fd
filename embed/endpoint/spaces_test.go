package endpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
)

func TestSpaceIsMadeOnce(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	provider := fmt.Sprint("made once by ", org)
	spaces, errs := make([]endpoint.Space, 16), make([]error, 16)
	var wait sync.WaitGroup
	for i := range spaces {
		wait.Go(func() { spaces[i], errs[i] = endpoint.UseSpace(t.Context(), pool, provider, "small", 1536) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, s := range spaces {
		if s != spaces[0] || s.ID == 0 || s.Provider != provider || s.Model != "small" || s.Dimension != 1536 {
			t.Errorf("got %+v and %+v, want one space", spaces[0], s)
		}
	}
}

func TestSpacesDifferByProviderModelAndDimension(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	ids := map[int16]bool{}
	for _, s := range []endpoint.Space{{0, "a", "m", 384}, {0, "b", "m", 384}, {0, "a", "n", 384}, {0, "a", "m", 385},
		{0, "a", "m", 4000}} {
		got, err := endpoint.UseSpace(t.Context(), pool, s.Provider, s.Model, s.Dimension)
		if err != nil {
			t.Fatal(err)
		}
		if ids[got.ID] {
			t.Errorf("%+v shares its id", got)
		}
		ids[got.ID] = true
	}
}

// An insert uses up one of the 32,767 ids even if it adds no row.
func TestSpaceInUseTakesNoNumber(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t) // counts the statements of this test
	use := func() {
		if _, err := endpoint.UseSpace(t.Context(), pool, "a", "in use", 3); err != nil {
			t.Fatal(err)
		}
	}
	use()
	for _, sql := range dbtest.Sent(t, pool, use) {
		if strings.Contains(sql, "INSERT") {
			t.Errorf("the use of a space that is known sends %s", sql)
		}
	}
}

func TestSpaceOfImpossibleDimension(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	for _, dimension := range []int{-1, 0, 4001} {
		if _, err := endpoint.UseSpace(t.Context(), pool, "a", "m", dimension); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("dimension %d: got %v, want db.ErrInvalid", dimension, err)
		}
	}
}

// Postgres stores, returns and multiplies the results of Document and Query.
func TestWeightsInPostgres(t *testing.T) {
	t.Parallel()
	pool, err := dbtest.Pool(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Release()
	if _, err := pool.Exec(t.Context(),
		`CREATE TEMP TABLE rows (id int, lex sparsevec(16777216), terms int[] NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 20_000 {
		many.WriteString(" w" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)))
	}
	for i, text := range []string{"", "a red fox", "the red car and the red house", many.String()} {
		lex := lexicon.Document(text)
		if _, err := pool.Exec(t.Context(), `INSERT INTO rows VALUES ($1, $2, $3)`, i, lex.Vector, lex.Terms); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		back, err := db.One[lexicon.Lex](t.Context(), pool, `
			SELECT lex AS vector, terms, '' AS language FROM rows WHERE id = $1`, i)
		if err != nil || back.Vector.String() != lex.Vector.String() || !cmp.Equal(back.Terms, lex.Terms) {
			t.Errorf("row %d came back as another: %v", i, err)
		}
	}
	query := lexicon.NewIDF(nil, 0).Query("red").Vector
	got, err := db.All[int](t.Context(), pool, `SELECT id FROM rows WHERE lex <#> $1 < 0 ORDER BY lex <#> $1, id`, query)
	if err != nil || !cmp.Equal(got, []int{2, 1}) {
		t.Errorf("got rows %v, %v, want 2 before 1", got, err)
	}
	empty := lexicon.NewIDF(nil, 0).Query("the").Vector
	got, err = db.All[int](t.Context(), pool, `SELECT id FROM rows WHERE lex <#> $1 < 0`, empty)
	if err != nil || len(got) != 0 {
		t.Errorf("a query of stop words: got rows %v, %v, want none", got, err)
	}
}
