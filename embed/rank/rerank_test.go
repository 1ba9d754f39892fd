package rank_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/rank"
)

// reranked makes rows with the given texts and scores that fall from 1, and returns them as a reranker orders them.
func reranked(ctx context.Context, r rank.Ranking, texts ...string) []rank.Scored {
	rows := make([]rank.Scored, len(texts))
	for i := range rows {
		rows[i] = rank.Scored{ID: int64(i), Score: 1 - float64(i)/100}
	}
	byKey := map[int64]string{}
	for i, text := range texts {
		byKey[int64(i)] = text
	}
	r.RerankTexts(ctx, rows, byKey)
	return rows
}

func idsOf(rows []rank.Scored) (ids []int64) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestARerankerOrdersTheBestRows(t *testing.T) {
	t.Parallel()
	r := rank.Judging(embedtest.Preferring("oak"), "which tree")
	got := reranked(t.Context(), r, "elm", "oak", "ash", "oak oak")
	if want := []int64{3, 1, 0, 2}; !slices.Equal(idsOf(got), want) {
		t.Errorf("got the rows %v, want %v: those without the word in their order", idsOf(got), want)
	}
	for i, row := range got {
		if want := 1 - float64(i)/100; row.Score != want {
			t.Errorf("score of place %d: got %v, want %v, as before", i, row.Score, want)
		}
	}
	if e := r.Judged(); e == nil || e.Rows != 4 || e.Model != "preferring-oak" || e.Note != "" {
		t.Errorf("it is explained as %+v", e)
	}
	texts := make([]string, rank.RerankRows+2)
	texts[rank.RerankRows-1], texts[rank.RerankRows] = "oak", "oak oak"
	got = reranked(t.Context(), r, texts...)
	if got[0].ID != rank.RerankRows-1 || got[rank.RerankRows].ID != rank.RerankRows {
		t.Errorf("of %d rows: got %v, want the last of the first %d in front", len(texts), idsOf(got), rank.RerankRows)
	}
}

func TestWithoutAnAnswerTheOrderStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scores := func(list []float64, err error) *rank.Reranker {
			return &rank.Reranker{Name: "r", Timeout: time.Second,
				Scores: func(context.Context, string, []string) ([]float64, error) { return list, err }}
		}
		slow := &rank.Reranker{Name: "r", Timeout: time.Second,
			Scores: func(ctx context.Context, _ string, _ []string) ([]float64, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("rerank: %w", ctx.Err())
			}}
		for name, c := range map[string]struct {
			of   *rank.Reranker
			note string
		}{
			"it takes too long":  {slow, "it did not answer within 1s"},
			"it fails":           {scores(nil, errors.New("no memory")), "it failed"},
			"it scores too few":  {scores([]float64{1}, nil), "it failed"},
			"it gives no number": {scores([]float64{math.NaN(), 2}, nil), "it failed"},
		} {
			r := rank.Judging(c.of, "which tree")
			if got := reranked(t.Context(), r, "elm", "oak"); !slices.Equal(idsOf(got), []int64{0, 1}) {
				t.Errorf("%s: got the rows %v, want them as they were", name, idsOf(got))
			}
			if e := r.Judged(); e == nil || e.Rows != 0 || e.Note != c.note {
				t.Errorf("%s: it is explained as %+v, want the note %q", name, e, c.note)
			}
		}
		if got := reranked(t.Context(), rank.Ranking{}, "elm", "oak"); !slices.Equal(idsOf(got), []int64{0, 1}) {
			t.Errorf("without a reranker: got the rows %v", idsOf(got))
		}
	})
}
