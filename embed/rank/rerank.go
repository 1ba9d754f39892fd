package rank

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"
)

// RerankRows is how many of the best rows of a search a reranker judges.
const RerankRows = 30

// Reranker is a model that reads a question and a text together, and judges how well the text answers the question. A
// nil *Reranker changes nothing.
type Reranker struct {
	Name    string        // of the model
	Timeout time.Duration // time bound for a search; after it, the order stays unchanged
	Log     *slog.Logger  // gets failures; nil drops them

	// Scores returns a score for each text: the higher, the better. It ends early with the context's error.
	Scores func(ctx context.Context, question string, texts []string) ([]float64, error)
}

// judgement is the reranker's judgement of a ranking.
type judgement struct {
	reranker *Reranker
	asked    bool
	scores   map[int64]float64 // row key → score; empty if there was no answer
	note     string            // why there was no answer
	took     time.Duration
}

// ExplainedRerank says what a reranker did.
type ExplainedRerank struct {
	Model        string  `json:"model" doc:"Its name."`
	Rows         int     `json:"rows" doc:"Of the best, how many it ordered anew: at most 30, and 0 if it did not answer."`
	Note         string  `json:"note,omitempty" doc:"Why it did not; absent if it did."`
	Milliseconds float64 `json:"milliseconds" doc:"That it took."`
}

// Reranks reports whether a reranker judges the best rows. It does so only if both words and meaning may rank.
func (r Ranking) Reranks() bool { return r.judged != nil }

// Judged is an item for a reranker to judge.
type Judged struct {
	Key  int64
	Text string
}

// Rerank orders the first RerankRows items of a ranking by the reranker's scores of their texts. The items must be in
// order, the best first. An item takes the score of its new place: so scores still fall, and can be compared with other
// searches. Without a reranker, or without an answer in time, the order stays.
func Rerank[T any](ctx context.Context, r Ranking, items []T, judge func(T) Judged, score func(*T) *float64) {
	best := items[:min(len(items), RerankRows)]
	if !r.Reranks() || len(best) < 2 {
		return
	}
	judged := make([]Judged, len(best))
	for i, item := range best {
		judged[i] = judge(item)
	}
	order := r.judged.order(ctx, r.text, judged)
	if order == nil {
		return
	}
	before, places := slices.Clone(best), make([]float64, len(best))
	for i := range best {
		places[i] = *score(&best[i])
	}
	for place, i := range order {
		best[place] = before[i]
		*score(&best[place]) = places[place]
	}
}

// RerankTexts is Rerank for the rows themselves. texts maps row key → text.
func (r Ranking) RerankTexts(ctx context.Context, rows []Scored, texts map[int64]string) {
	Rerank(ctx, r, rows, func(row Scored) Judged { return Judged{row.ID, texts[row.ID]} },
		func(row *Scored) *float64 { return &row.Score })
}

// order returns the positions of items, the best first, or nil if the reranker does not answer.
func (j *judgement) order(ctx context.Context, question string, items []Judged) []int {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, j.reranker.Timeout)
	defer cancel()
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.Text
	}
	scores, err := j.reranker.Scores(limited, question, texts)
	j.asked, j.took, j.scores, j.note = true, time.Since(began), nil, ""
	if err == nil && (len(scores) != len(items) || slices.ContainsFunc(scores, math.IsNaN)) {
		err = errors.New("it gave a score that is no number")
	}
	if err != nil {
		j.failed(ctx, err)
		return nil
	}
	order := make([]int, len(items))
	j.scores = make(map[int64]float64, len(items))
	for i, item := range items {
		order[i], j.scores[item.Key] = i, scores[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

func (j *judgement) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // nobody waits for the search any more
	case errors.Is(err, context.DeadlineExceeded):
		j.note = "it did not answer within " + j.reranker.Timeout.String()
	default:
		j.note = "it failed"
	}
	if j.reranker.Log != nil && j.note != "" {
		j.reranker.Log.Debug("the order of a search stays as it was before the reranker", "model", j.reranker.Name,
			"error", err)
	}
}

// explained says what the reranker did; nil if none was asked.
func (j *judgement) explained() *ExplainedRerank {
	if j == nil || !j.asked {
		return nil
	}
	return &ExplainedRerank{Model: j.reranker.Name, Rows: len(j.scores), Note: j.note, Milliseconds: milliseconds(j.took)}
}

// of returns the score of a row, or nil if it was not judged.
func (j *judgement) of(key int64) *float64 {
	if j == nil {
		return nil
	}
	if score, judged := j.scores[key]; judged {
		return &score
	}
	return nil
}
