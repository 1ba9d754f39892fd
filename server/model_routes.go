package server

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) modelRoutes(a *rest.API) {
	rest.Get(a, "/v1/models", "List language models", s.listModels)
	rest.Get(a, "/v1/models/embedding", "List embedding models", s.listEmbeddingModels)
}

// listModels lists the models whose windows are known.
func (s *Server) listModels(_ context.Context, in *letta.ModelFilter) ([]letta.Model, error) {
	return slices.DeleteFunc(rest.Each(agent.Models, letta.ModelOf), in.Excludes), nil
}

// listEmbeddingModels lists the one model that texts are embedded with: the endpoint's, or the built-in word weights.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]letta.EmbeddingModel, error) {
	return []letta.EmbeddingModel{letta.EmbeddingModelOf(s.Files.Embedding(files.DefaultChunkTokens))}, nil
}
