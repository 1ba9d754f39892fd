package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// evaluation is how well searches find the answers of questions.
type evaluation struct {
	Questions int `json:"questions"`

	Words   quality  `json:"words"`
	Meaning *quality `json:"meaning"` // null where there is no embedding model
	Fused   quality  `json:"fused"`   // with the server's weight

	Lost     []lost     `json:"lost"`     // that words find among the first ten, and both together do not
	Weights  []weighted `json:"weights"`  // of both together
	Proposed *float64   `json:"proposed"` // LOCI_EMBEDDING_WEIGHT; null to keep what is set
	Note     string     `json:"note"`
}

// quality is the share of the questions that have an answer among the first hits, and the mean of one over the place of
// the first answer among ten; all in percent.
type quality struct {
	Hit1  float64 `json:"hit_1"`
	Hit5  float64 `json:"hit_5"`
	Hit10 float64 `json:"hit_10"`
	MRR   float64 `json:"mrr"`
}

// weighted is the quality of searches by words and meaning with a weight.
type weighted struct {
	Weight float64 `json:"weight"`
	quality
}

// lost is a question whose answer is lost.
type lost struct {
	Line     int    `json:"line"`
	Question string `json:"question"`
	Words    int    `json:"words_rank"` // from 1
}

// triedWeights are those among which the best is proposed.
var triedWeights = []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2}

// places are where the answers of the questions stand, from 1; 0 is not among the first hits.
type places []int

func (p places) quality() (q quality) {
	share := 100 / float64(len(p))
	for _, at := range p {
		if at == 0 {
			continue
		}
		q.MRR += share / float64(at)
		q.Hit10 += share
		if at <= 5 {
			q.Hit5 += share
		}
		if at == 1 {
			q.Hit1 += share
		}
	}
	return q
}

// found returns how many answers were found.
func (p places) found() (n int) {
	for _, at := range p {
		if at > 0 {
			n++
		}
	}
	return n
}

// evaluate asks all questions by words, by meaning, by both, and by both with several weights.
func evaluate(ctx context.Context, questions []expected, search searcher) (evaluation, error) {
	out := evaluation{Questions: len(questions), Lost: []lost{}, Weights: []weighted{}}
	words, _, err := placesOf(ctx, questions, search, way{mode: "fts"})
	if err != nil {
		return out, err
	}
	fused, byMeaning, err := placesOf(ctx, questions, search, way{mode: "hybrid"})
	if err != nil {
		return out, err
	}
	out.Words, out.Fused = words.quality(), fused.quality()
	for i, q := range questions {
		if words[i] > 0 && fused[i] == 0 {
			out.Lost = append(out.Lost, lost{q.line, q.Question, words[i]})
		}
	}
	meaning, _, err := placesOf(ctx, questions, search, way{mode: "vector"})
	if no, ok := errors.AsType[*refusedRequest](err); ok && no.refusesMode() {
		out.Note = "The server has no embedding model: searches rank by words alone."
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if !byMeaning {
		out.Note = "No answer was ranked by meaning: the texts wait for their vectors, or the embedding model fails. " +
			"GET /v1/embeddings/progress says more."
		return out, nil
	}
	out.Meaning = new(meaning.quality())
	tried := map[float64]places{}
	for _, weight := range triedWeights {
		if tried[weight], _, err = placesOf(ctx, questions, search, way{"hybrid", weight}); err != nil {
			return out, err
		}
		out.Weights = append(out.Weights, weighted{weight, tried[weight].quality()})
	}
	if len(questions) >= fewQuestions {
		out.Proposed = proposed(fused, tried)
	}
	return out, nil
}

// refusesMode reports whether a route refuses a search by meaning alone, because there is no embedding model.
func (e *refusedRequest) refusesMode() bool {
	return e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity
}

// placesOf returns where the answer of each question stands among the hits of a search, and whether any was ranked by
// meaning.
func placesOf(ctx context.Context, questions []expected, search searcher, w way) (at places, byMeaning bool,
	err error) {
	at = make(places, len(questions))
	for i, q := range questions {
		hits, meaning, err := search(ctx, q.Question, w)
		if err != nil {
			return nil, false, fmt.Errorf("line %d: %w", q.line, err)
		}
		at[i] = 1 + slices.IndexFunc(hits, q.isAnswered)
		byMeaning = byMeaning || meaning
	}
	return at, byMeaning, nil
}

// A weight is proposed if it finds so many answers more than the server's, or as many and puts them so far ahead.
const (
	moreAnswers = 2
	moreMRR     = 2.0
)

// proposed returns the weight whose searches find the most answers, of those that find as many the one with the
// greatest mean reciprocal rank; nil if that is hardly better than what the server has.
func proposed(now places, tried map[float64]places) *float64 {
	best := triedWeights[0]
	for _, weight := range triedWeights {
		n, most := tried[weight].found(), tried[best].found()
		if n > most || n == most && tried[weight].quality().MRR > tried[best].quality().MRR {
			best = weight
		}
	}
	more := tried[best].found() - now.found()
	if more >= moreAnswers || more >= 0 && tried[best].quality().MRR >= now.quality().MRR+moreMRR {
		return &best
	}
	return nil
}

// print prints the evaluation for people.
func (e evaluation) print(s streams) error {
	row := func(name string, q quality) []string {
		cells := []string{name}
		for _, share := range []float64{q.Hit1, q.Hit5, q.Hit10, q.MRR} {
			cells = append(cells, fmt.Sprintf("%.1f", share))
		}
		return cells
	}
	fmt.Fprintf(s.out, "%d questions; with an answer among the first 1, 5 and 10 hits, and mean reciprocal rank, in "+
		"percent:\n\n", e.Questions)
	rows := [][]string{row("words", e.Words)}
	if e.Meaning != nil {
		rows = append(rows, row("meaning", *e.Meaning), row("words and meaning", e.Fused))
	}
	for _, w := range e.Weights {
		rows = append(rows, row(fmt.Sprintf("with the weight %g", w.Weight), w.quality))
	}
	if err := printTable(s, "RANKED BY | HIT@1 | HIT@5 | HIT@10 | MRR", rows); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if len(e.Lost) > 0 {
		fmt.Fprintln(s.out, "Words find these answers, and words and meaning together do not:")
		for _, l := range e.Lost {
			fmt.Fprintf(s.out, "  line %d, number %d by words: %s\n", l.Line, l.Words, printable(l.Question))
		}
		fmt.Fprintln(s.out)
	}
	_, err := fmt.Fprintln(s.out, e.advice())
	return err
}

// fewQuestions is a number below which one question more or less is several percent.
const fewQuestions = 30

// advice returns what to do.
func (e evaluation) advice() string {
	switch {
	case e.Note != "":
		return e.Note
	case e.Questions < fewQuestions:
		return fmt.Sprintf("%d questions say little of the weight: give %d and more.", e.Questions, fewQuestions)
	case e.Proposed == nil:
		return "Keep LOCI_EMBEDDING_WEIGHT as it is: no other weight is clearly better."
	}
	return fmt.Sprintf("Set LOCI_EMBEDDING_WEIGHT=%g: it finds more.", *e.Proposed)
}
