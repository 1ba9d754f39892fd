package server

import (
	"context"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) modelRoutes(a *rest.API) {
	rest.Get(a, "/v1/models", "List language models", s.listModels)
	rest.Get(a, "/v1/models/embedding", "List embedding models", s.listEmbeddingModels)
}

// listModels is empty: this version calls no language model.
func (s *Server) listModels(context.Context, *struct{}) ([]any, error) { return []any{}, nil }

// listEmbeddingModels lists the one model that texts are embedded with: the endpoint's, or the built-in word weights.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]letta.EmbeddingModel, error) {
	return []letta.EmbeddingModel{letta.EmbeddingModelOf(s.Files.Embedding(files.DefaultChunkTokens))}, nil
}
