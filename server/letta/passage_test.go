package letta_test

import (
	"testing"

	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Letta's clients are shown vectors, others if they ask.
func TestWhoIsShownVectors(t *testing.T) {
	t.Parallel()
	yes, no := rest.Opt[bool]{Set: true, Value: true}, rest.Opt[bool]{Set: true}
	for _, c := range []struct {
		name string
		asks letta.WithEmbeddings
		want bool
	}{
		{"a program", letta.WithEmbeddings{Client: letta.Client{UserAgent: "curl/8.5"}}, false},
		{"a program that asks", letta.WithEmbeddings{Embeddings: yes}, true},
		{"Letta's client", letta.WithEmbeddings{Client: letta.Client{UserAgent: "Letta/JS 1.12.1"}}, true},
		{"Letta's older client", letta.WithEmbeddings{Client: letta.Client{FernSDK: "letta-client"}}, true},
		{"Letta's client that asks for none", letta.WithEmbeddings{Client: letta.Client{UserAgent: "Letta/JS 1.12.1"},
			Embeddings: no}, false},
	} {
		if got := c.asks.Shows(); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
