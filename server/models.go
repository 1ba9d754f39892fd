package server

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// EmbeddingModel is a model that makes vectors, in Letta's shape.
type EmbeddingModel struct {
	Handle          string    `json:"handle"`
	Name            string    `json:"name"`
	DisplayName     string    `json:"display_name"`
	ProviderType    string    `json:"provider_type"`
	ProviderName    string    `json:"provider_name"`
	ModelType       string    `json:"model_type"`
	Dimension       int       `json:"embedding_dim"`
	Model           string    `json:"embedding_model"`
	EndpointType    string    `json:"embedding_endpoint_type"`
	Endpoint        rest.Null `json:"embedding_endpoint"`
	ChunkTokens     int       `json:"embedding_chunk_size"`
	BatchSize       int       `json:"batch_size"`
	AzureEndpoint   rest.Null `json:"azure_endpoint"`
	AzureVersion    rest.Null `json:"azure_version"`
	AzureDeployment rest.Null `json:"azure_deployment"`
}

// listModels is empty: this version calls no language model.
func (s *Server) listModels(context.Context, *struct{}) ([]any, error) { return []any{}, nil }

// listEmbeddingModels lists the one model that texts are made searchable with: that of the endpoint, or the built-in word weights.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]EmbeddingModel, error) {
	c := s.Files.Embedding(files.DefaultChunkTokens)
	provider, _, _ := strings.Cut(c.Handle, "/")
	return []EmbeddingModel{{Handle: c.Handle, Name: c.Model, DisplayName: c.Model, ProviderType: "openai", ProviderName: provider,
		ModelType: "embedding", Dimension: c.Dimension, Model: c.Model, EndpointType: c.EndpointType, ChunkTokens: c.ChunkTokens,
		BatchSize: c.BatchSize}}, nil
}
