package letta

import (
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

// EmbeddingModelOf shows the model that texts are made searchable with.
func EmbeddingModelOf(c files.EmbeddingConfig) EmbeddingModel {
	provider, _, _ := strings.Cut(c.Handle, "/")
	return EmbeddingModel{Handle: c.Handle, Name: c.Model, DisplayName: c.Model, ProviderType: "openai",
		ProviderName: provider, ModelType: "embedding", Dimension: c.Dimension, Model: c.Model,
		EndpointType: c.EndpointType, ChunkTokens: c.ChunkTokens, BatchSize: c.BatchSize}
}
