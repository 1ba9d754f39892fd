package server

import "context"

// EmbeddingModel is a model that makes vectors, in Letta's shape.
type EmbeddingModel struct {
	Handle          string `json:"handle"`
	Name            string `json:"name"`
	DisplayName     string `json:"display_name"`
	ProviderType    string `json:"provider_type"`
	ProviderName    string `json:"provider_name"`
	ModelType       string `json:"model_type"`
	Dimension       int    `json:"embedding_dim"`
	Model           string `json:"embedding_model"`
	EndpointType    string `json:"embedding_endpoint_type"`
	Endpoint        null   `json:"embedding_endpoint"`
	ChunkTokens     int    `json:"embedding_chunk_size"`
	BatchSize       int    `json:"batch_size"`
	AzureEndpoint   null   `json:"azure_endpoint"`
	AzureVersion    null   `json:"azure_version"`
	AzureDeployment null   `json:"azure_deployment"`
}

// listModels is empty: this version calls no language model.
func (s *Server) listModels(context.Context, *struct{}) ([]any, error) { return []any{}, nil }

// listEmbeddingModels lists the one model that vectors are made with, if there is one.
func (s *Server) listEmbeddingModels(context.Context, *struct{}) ([]EmbeddingModel, error) {
	space, ok := s.Dense.Space()
	if !ok {
		return []EmbeddingModel{}, nil
	}
	return []EmbeddingModel{{Handle: "openai/" + space.Model, Name: space.Model, DisplayName: space.Model, ProviderType: "openai",
		ProviderName: "openai", ModelType: "embedding", Dimension: space.Dimension, Model: space.Model, EndpointType: "openai",
		ChunkTokens: 300, BatchSize: 32}}, nil
}
