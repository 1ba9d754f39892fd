package rank_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/rank"
)

// builtin returns the built-in model, with its space in use.
func builtin(t testing.TB) *endpoint.Endpoint {
	t.Helper()
	encoder, err := local.Open()
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint.Endpoint{Embedder: local.NewTexts(encoder, 1), Queries: local.NewQueries(encoder),
		Name: "the built-in model", RefusesByNature: true, JobTexts: 16}
	e.Use(endpoint.Space{ID: 1, Model: local.Model, Dimension: local.Dimensions})
	return e
}

func TestTheBuiltinModelRanksWhatItIsMadeFor(t *testing.T) {
	t.Parallel()
	texts := []string{"The moon pulls the sea twice a day.", "2048 4096", "Как восстановить пароль?",
		"Ask the help desk for new credentials when you cannot log in.", "Bread is baked on Mondays."}
	e := builtin(t)
	r, remarks := rank.Texts(t.Context(), e, "I forgot my password", texts, rank.Arms{Words: true, Meaning: true})
	if !r.ByMeaning || len(r.Rows) == 0 || r.Rows[0].ID != 3 || remarks.Note != "" {
		t.Errorf("got %+v, by meaning %t, %+v, want text 3 first, by meaning, with no note", r.Rows, r.ByMeaning, remarks)
	}
	r, remarks = rank.Texts(t.Context(), e, "восстановить пароль", texts, rank.Arms{Words: true, Meaning: true})
	const note = "The built-in model gives the query no vector (most of its letters are not Latin), so this was ranked " +
		"by words alone."
	if r.ByMeaning || len(r.Rows) == 0 || r.Rows[0].ID != 2 || remarks.Note != note {
		t.Errorf("got %+v, by meaning %t, %+v, want text 2 first, by words, and %q", r.Rows, r.ByMeaning, remarks, note)
	}
}

func TestAJobOfTheBuiltinModelIsSmall(t *testing.T) {
	t.Parallel()
	e := builtin(t)
	if got := e.Size(); got != 16 {
		t.Errorf("texts of a job: got %d, want 16", got)
	}
	permit, _ := e.Await(t.Context())
	defer permit.End()
	vectors, refused, err := permit.Embed(t.Context(), []embed.Item{{ID: 1, Text: "A text."}, {ID: 2, Text: "1 2 3"}})
	if err != nil || len(vectors) != 1 || len(refused) != 1 || !strings.Contains(refused[0].Reason, "no letters") {
		t.Errorf("got %d vectors, refused %v, %v", len(vectors), refused, err)
	}
}
