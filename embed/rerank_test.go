package embed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
)

// reranked lets a reranker order rows with scores that fall from 1; their texts are given.
func reranked(ctx context.Context, r embed.Ranking, texts ...string) []embed.Scored {
	rows := make([]embed.Scored, len(texts))
	for i := range rows {
		rows[i] = embed.Scored{ID: int64(i), Score: 1 - float64(i)/100}
	}
	byKey := map[int64]string{}
	for i, text := range texts {
		byKey[int64(i)] = text
	}
	r.RerankTexts(ctx, rows, byKey)
	return rows
}

func idsOf(rows []embed.Scored) (ids []int64) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestARerankerOrdersTheBestRows(t *testing.T) {
	t.Parallel()
	r := embed.Judging(embedtest.Preferring("oak"), "which tree")
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
	texts := make([]string, embed.RerankRows+2)
	texts[embed.RerankRows-1], texts[embed.RerankRows] = "oak", "oak oak"
	got = reranked(t.Context(), r, texts...)
	if got[0].ID != embed.RerankRows-1 || got[embed.RerankRows].ID != embed.RerankRows {
		t.Errorf("of %d rows: got %v, want the last of the first %d in front", len(texts), idsOf(got), embed.RerankRows)
	}
}

func TestWithoutAnAnswerTheOrderStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scores := func(list []float64, err error) *embed.Reranker {
			return &embed.Reranker{Name: "r", Timeout: time.Second,
				Scores: func(context.Context, string, []string) ([]float64, error) { return list, err }}
		}
		slow := &embed.Reranker{Name: "r", Timeout: time.Second,
			Scores: func(ctx context.Context, _ string, _ []string) ([]float64, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("rerank: %w", ctx.Err())
			}}
		for name, c := range map[string]struct {
			of   *embed.Reranker
			note string
		}{
			"it takes too long":  {slow, "it did not answer within 1s"},
			"it fails":           {scores(nil, errors.New("no memory")), "it failed"},
			"it scores too few":  {scores([]float64{1}, nil), "it failed"},
			"it gives no number": {scores([]float64{math.NaN(), 2}, nil), "it failed"},
		} {
			r := embed.Judging(c.of, "which tree")
			if got := reranked(t.Context(), r, "elm", "oak"); !slices.Equal(idsOf(got), []int64{0, 1}) {
				t.Errorf("%s: got the rows %v, want them as they were", name, idsOf(got))
			}
			if e := r.Judged(); e == nil || e.Rows != 0 || e.Note != c.note {
				t.Errorf("%s: it is explained as %+v, want the note %q", name, e, c.note)
			}
		}
		if got := reranked(t.Context(), embed.Ranking{}, "elm", "oak"); !slices.Equal(idsOf(got), []int64{0, 1}) {
			t.Errorf("without a reranker: got the rows %v", idsOf(got))
		}
	})
}
