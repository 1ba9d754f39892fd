package embed

import (
	"context"
	"slices"

	"github.com/pgvector/pgvector-go"
)

// Arms are the rankings that a search fuses.
type Arms struct{ Words, Meaning bool }

// RankTexts ranks a few texts that no table has. The ids of the result are the texts' indices; a text that neither arm
// finds is not in it. By meaning it ranks the MostTexts - 1 best by words, if the endpoint answers. Where it does not,
// and with a nil Endpoint, words rank alone.
func (d *Endpoint) RankTexts(ctx context.Context, query string, texts []string, arms Arms) ([]Scored, Remarks) {
	words := rankWords(query, texts)
	var meaning []Hit
	note := ""
	if arms.Meaning && d != nil {
		meaning, note = d.rankMeaning(ctx, query, texts, words)
	}
	if !arms.Words && len(meaning) > 0 {
		words = nil
	}
	rows := Fuse(words, meaning, meaningWeight(confidenceOfMeaning(meaning)))
	return rows, Remarks{Note: note, Wordless: len(rows) == 0 && len(meaning) == 0 && IsWordless(query)}
}

// rankWords returns the BM25 scores of all texts, the best first.
func rankWords(query string, texts []string) []Hit {
	documents, terms := make([]Lex, len(texts)), make([][]int64, len(texts))
	for i, text := range texts {
		documents[i] = Document(text)
		terms[i] = Owned(0, documents[i].Terms)
	}
	q := NewIDF(terms, len(texts)).Query(query)
	hits := make([]Hit, len(texts))
	for i, d := range documents {
		hits[i] = Hit{ID: int64(i), Score: inner(q.Vector, d.Vector)}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		if a.Score > b.Score {
			return -1
		} else if a.Score < b.Score {
			return 1
		}
		return 0
	})
	return hits
}

// inner returns the inner product of two vectors.
func inner(a, b pgvector.SparseVector) (sum float64) {
	indices, values, of := b.Indices(), b.Values(), a.Values()
	for i, index := range a.Indices() {
		if j, ok := slices.BinarySearch(indices, index); ok {
			sum += float64(of[i]) * float64(values[j])
		}
	}
	return sum
}

// rankMeaning returns the cosines of the query and of those texts that the endpoint made vectors of, of the first by
// words.
func (d *Endpoint) rankMeaning(ctx context.Context, query string, texts []string, words []Hit) (hits []Hit,
	note string) {
	items := []Item{{ID: -1, Text: query}}
	for _, h := range words[:min(len(words), MostTexts-1)] {
		items = append(items, Item{ID: h.ID, Text: texts[h.ID]})
	}
	vectors, err := d.ask(ctx, d.source(), items)
	if err != nil || len(vectors) == 0 || vectors[0].ID != -1 {
		return nil, byWordsNote(err)
	}
	for _, v := range vectors[1:] {
		if len(v.Values) != len(vectors[0].Values) {
			return nil, ""
		}
		cosine := 0.0
		for i, x := range v.Values {
			cosine += float64(x) * float64(vectors[0].Values[i])
		}
		hits = append(hits, Hit{ID: v.ID, Score: cosine})
	}
	return hits, ""
}
