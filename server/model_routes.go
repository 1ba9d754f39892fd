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

// listModels lists the model that the operator configured, those of its endpoint, and those whose windows are known.
func (s *Server) listModels(ctx context.Context, in *struct {
	letta.ModelFilter
	rest.Paging
}) ([]letta.Model, error) {
	var models []letta.Model
	own, window := s.Agents.DefaultModel(ctx)
	for _, handle := range slices.Concat([]string{own}, s.Agents.EndpointModels(ctx), agent.Models) {
		known := slices.ContainsFunc(models, func(m letta.Model) bool { return m.Handle == handle })
		switch {
		case handle == own && own != "" && !known:
			models = append(models, letta.ModelOf(handle, window))
		case handle != "" && !known:
			models = append(models, letta.ModelOf(handle, 0))
		}
	}
	models = slices.DeleteFunc(models, in.Excludes)
	page := in.Page(rest.MaxPage, rest.OldestFirst)
	return rest.Paged(models, page, func(m letta.Model) string { return m.Handle }), nil
}

// listEmbeddingModels lists the one model that texts are embedded with: the endpoint's, or the built-in word weights. A
// model whose endpoint does not answer is listed with the problem.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]letta.EmbeddingModel, error) {
	return []letta.EmbeddingModel{
		letta.EmbeddingModelOf(s.Files.Embedding(files.DefaultChunkTokens), s.Files.EmbeddingProblem())}, nil
}
