package server

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) modelRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/models",
		"list_models: List language models. The operator's first, then those that its endpoint lists, and those whose "+
			"windows are known.", s.listModels)
	rest.Get(a.For(rest.Read), "/v1/models/embedding",
		"list_embedding_models: List embedding models. The one that texts are embedded with.", s.listEmbeddingModels)
}

// listModels lists the model that the operator configured, the models of the endpoint, and the models with known
// windows.
func (s *Server) listModels(ctx context.Context, input *struct {
	letta.ModelFilter
	rest.Paging
}) ([]letta.Model, error) {
	var models []letta.Model
	configured, window := s.Agents.DefaultModel(ctx)
	for _, handle := range slices.Concat([]string{configured}, s.Agents.EndpointModels(ctx), agent.Models) {
		listed := slices.ContainsFunc(models, func(m letta.Model) bool { return m.Handle == handle })
		switch {
		case handle == configured && configured != "" && !listed:
			models = append(models, letta.ModelOf(handle, window))
		case handle != "" && !listed:
			models = append(models, letta.ModelOf(handle, 0))
		}
	}
	models = slices.DeleteFunc(models, input.Excludes)
	page := input.Page(rest.MaxPage, rest.OldestFirst)
	return rest.Paged(models, page, func(m letta.Model) string { return m.Handle }), nil
}

// listEmbeddingModels lists the one model that embeds texts: the endpoint's, or the built-in word weights. If the
// endpoint does not answer, its model is listed with the problem.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]letta.EmbeddingModel, error) {
	return []letta.EmbeddingModel{
		letta.EmbeddingModelOf(s.Files.Embedding(files.DefaultChunkTokens), s.Files.EmbeddingProblem())}, nil
}
