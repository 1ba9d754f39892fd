package embedtest

import (
	"context"
	"strings"
	"time"

	"github.com/loci-memory/loci/embed/rank"
)

// Preferring returns a reranker that scores a text by how often it has a word.
func Preferring(word string) *rank.Reranker {
	return &rank.Reranker{Name: "preferring-" + word, Timeout: time.Minute,
		Scores: func(_ context.Context, _ string, texts []string) ([]float64, error) {
			scores := make([]float64, len(texts))
			for i, text := range texts {
				scores[i] = float64(strings.Count(strings.ToLower(text), word))
			}
			return scores, nil
		}}
}
