package rank

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/pgvector/pgvector-go"
)

// Arms are the rankings that a search fuses.
type Arms struct {
	Words, Meaning bool
	Weight         float64 // of meaning, see Question.Weight
}

// Texts ranks a few texts that are in no table. The ids of the rows are the texts' indices; a text that neither arm
// finds is left out. The MostTexts - 1 best texts by words are also ranked by meaning. If the endpoint does not answer
// or is nil, words rank alone.
func Texts(ctx context.Context, d *endpoint.Endpoint, query string, texts []string, arms Arms) (Ranking, Remarks) {
	started := time.Now()
	words, idf, weighed := rankWords(query, texts)
	r := Ranking{Query: weighed, ByWords: true, text: query, scope: idf}
	r.words = armOf([][]Hit{related(slices.Clone(words))}, started)
	r.BestWords = max(0, r.words.best)
	var meaning []Hit
	if arms.Meaning && d != nil {
		began := time.Now()
		meaning, r.Note = rankMeaning(ctx, d, query, texts, words)
		r.meaning, r.ByMeaning = armOf([][]Hit{meaning}, began), len(meaning) > 0
	}
	if !arms.Words && r.ByMeaning {
		words, r.ByWords = nil, false
	}
	r.wordsConfidence, r.meaningConfidence = r.confidenceOfWords(), confidenceOfMeaning(meaning)
	r.Confidence = max(r.wordsConfidence, r.meaningConfidence)
	r.Weights = r.weigh(meaning, len(meaning), cmp.Or(arms.Weight, d.MeaningWeight()))
	r.Rows = Fuse(words, meaning, r.Weights)
	r.took = time.Since(started)
	return r, Remarks{Note: r.Note, Wordless: len(r.Rows) == 0 && !r.ByMeaning && IsWordless(query)}
}

// rankWords returns the BM25 scores of all texts, the best first, the statistics of their words, and the query's words.
func rankWords(query string, texts []string) ([]Hit, *lexicon.IDF, lexicon.Query) {
	documents, terms := make([]lexicon.Lex, len(texts)), make([][]int64, len(texts))
	for i, text := range texts {
		documents[i] = lexicon.Document(text)
		terms[i] = lexicon.Owned(0, documents[i].Terms)
	}
	idf := lexicon.NewIDF(terms, len(texts))
	var compounds *lexicon.Compounds
	if idf.HasCompounds() {
		compounds = lexicon.NewCompounds(texts)
	}
	q := idf.QueryWith(query, compounds)
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
	return hits, idf, q
}

// inner returns the inner product of two vectors.
func inner(a, b pgvector.SparseVector) (sum float64) {
	indices, values, factors := b.Indices(), b.Values(), a.Values()
	for i, index := range a.Indices() {
		if j, ok := slices.BinarySearch(indices, index); ok {
			sum += float64(factors[i]) * float64(values[j])
		}
	}
	return sum
}

// rankMeaning embeds the query and the best texts by words. It returns their cosines, without texts for which the
// endpoint made no vector.
func rankMeaning(ctx context.Context, d *endpoint.Endpoint, query string, texts []string, words []Hit) (hits []Hit,
	note string) {
	items := []embed.Item{{ID: -1, Text: query}}
	for _, h := range words[:min(len(words), endpoint.MostTexts-1)] {
		items = append(items, embed.Item{ID: h.ID, Text: texts[h.ID]})
	}
	vectors, err := d.EmbedTexts(ctx, items)
	if err != nil || len(vectors) == 0 || vectors[0].ID != -1 {
		return nil, endpoint.ByWordsNote(err)
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
