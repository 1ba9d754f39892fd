package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// evaluation says how well searches find the answers to questions.
type evaluation struct {
	Questions int `json:"questions"`

	Words   quality  `json:"words"`
	Meaning *quality `json:"meaning"` // null if there is no embedding model
	Fused   quality  `json:"fused"`   // words and meaning with the server's weight

	Missed   []missed   `json:"missed"`   // answers that no search found
	Lost     []lost     `json:"lost"`     // answers among the first ten by words, but not by words and meaning together
	Weights  []weighted `json:"weights"`  // words and meaning with each weight
	Proposed *float64   `json:"proposed"` // value for LOCI_EMBEDDING_WEIGHT; null to keep the current one
	Note     string     `json:"note"`
}

// quality is the share of questions with an answer among the first hits, and the mean reciprocal rank of the first
// answer among ten hits. All values are percentages.
type quality struct {
	Hit1  float64 `json:"hit_1"`
	Hit5  float64 `json:"hit_5"`
	Hit10 float64 `json:"hit_10"`
	MRR   float64 `json:"mrr"`
}

// weighted is the quality with a weight of meaning.
type weighted struct {
	Weight float64 `json:"weight"`
	quality
}

// lost is a question that words alone answer, but words and meaning together do not.
type lost struct {
	Line     int    `json:"line"`
	Question string `json:"question"`
	Words    int    `json:"words_rank"` // rank of the answer by words, from 1
}

// missed is a question whose answer no search found.
type missed struct {
	Line     int    `json:"line"`
	Question string `json:"question"`
}

// triedWeights are the weights that are compared.
var triedWeights = []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2}

// places are the ranks of the answers, from 1; 0 means not found.
type places []int

func (p places) quality() (q quality) {
	share := 100 / float64(len(p))
	for _, place := range p {
		if place == 0 {
			continue
		}
		q.MRR += share / float64(place)
		q.Hit10 += share
		if place <= 5 {
			q.Hit5 += share
		}
		if place == 1 {
			q.Hit1 += share
		}
	}
	return q
}

// found returns how many answers were found.
func (p places) found() (n int) {
	for _, place := range p {
		if place > 0 {
			n++
		}
	}
	return n
}

// evaluate runs all questions by words, by meaning, by both, and by both with each weight.
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
	out.Missed = missedBy(questions, words, fused)
	meaning, _, err := placesOf(ctx, questions, search, way{mode: "vector"})
	if no, ok := errors.AsType[*refusedRequest](err); ok && no.refusesMode() {
		out.Note = "The server has no embedding model: searches rank by words alone."
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if !byMeaning {
		out.Note = "No answer was ranked by meaning: the texts wait for their vectors, the questions get none, or the " +
			"embedding model fails. GET /v1/embeddings/progress says more."
		return out, nil
	}
	out.Meaning = new(meaning.quality())
	out.Missed = missedBy(questions, words, fused, meaning)
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

// missedBy returns the questions whose answer none of the searches found.
func missedBy(questions []expected, searches ...places) []missed {
	all := []missed{}
	for i, q := range questions {
		if !slices.ContainsFunc(searches, func(p places) bool { return p[i] > 0 }) {
			all = append(all, missed{q.line, q.Question})
		}
	}
	return all
}

// refusesMode reports whether a route refused a search by meaning alone, because there is no embedding model.
func (e *refusedRequest) refusesMode() bool {
	return e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity
}

// placesOf returns the rank of each question's answer. byMeaning reports whether any search ranked by meaning.
func placesOf(ctx context.Context, questions []expected, search searcher, w way) (ranks places, byMeaning bool,
	err error) {
	ranks = make(places, len(questions))
	for i, q := range questions {
		hits, meaning, err := search(ctx, q.Question, w)
		if err != nil {
			return nil, false, fmt.Errorf("line %d: %w", q.line, err)
		}
		ranks[i] = 1 + slices.IndexFunc(hits, q.isAnswered)
		byMeaning = byMeaning || meaning
	}
	return ranks, byMeaning, nil
}

// A weight is proposed if it finds this many more answers than the server's weight, or as many answers with an MRR that
// is this much higher.
const (
	moreAnswers = 2
	moreMRR     = 2.0
)

// proposed returns the weight that finds the most answers; with equal numbers, the one with the highest mean reciprocal
// rank. It returns nil if that is hardly better than the server's weight.
func proposed(current places, tried map[float64]places) *float64 {
	best := triedWeights[0]
	for _, weight := range triedWeights {
		n, bestFound := tried[weight].found(), tried[best].found()
		if n > bestFound || n == bestFound && tried[weight].quality().MRR > tried[best].quality().MRR {
			best = weight
		}
	}
	gain := tried[best].found() - current.found()
	if gain >= moreAnswers || gain >= 0 && tried[best].quality().MRR >= current.quality().MRR+moreMRR {
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
	if len(e.Missed) > 0 {
		fmt.Fprintln(s.out, "No search finds these answers. Are they there, under the names that the questions give?")
		for _, m := range e.Missed {
			fmt.Fprintf(s.out, "  line %d: %s\n", m.Line, printable(m.Question))
		}
		fmt.Fprintln(s.out)
	}
	_, err := fmt.Fprintln(s.out, e.advice())
	return err
}

// fewQuestions is a number of questions at which a single question makes several percent.
const fewQuestions = 30

// advice returns a sentence that says what to do.
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
