package letta

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
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
	Problem         string    `json:"problem,omitempty" doc:"Why texts get no vectors now; absent if they get them."`
}

// Model is a language model for agents, in Letta's shape.
type Model struct {
	Handle           string `json:"handle"`
	Name             string `json:"name"`
	DisplayName      string `json:"display_name"`
	Model            string `json:"model"`
	EndpointType     string `json:"model_endpoint_type"`
	ProviderType     string `json:"provider_type"`
	ProviderName     string `json:"provider_name"`
	ProviderCategory string `json:"provider_category"`
	ContextWindow    int    `json:"context_window"`
	MaxContextWindow int    `json:"max_context_window"`
	ModelType        string `json:"model_type"`
}

// ModelOf returns the model with a handle. window is its context window in tokens; 0 means the window that Loci assumes
// for an agent with this model.
func ModelOf(handle string, window int) Model {
	provider, name, hasProvider := strings.Cut(handle, "/")
	if !hasProvider {
		provider, name = "openai", handle // the endpoint's protocol
	}
	window = cmp.Or(window, agent.Agent{Model: &handle}.AssumedWindow())
	return Model{Handle: handle, Name: name, DisplayName: name, Model: name, EndpointType: provider,
		ProviderType: provider, ProviderName: provider, ProviderCategory: "base", ContextWindow: window,
		MaxContextWindow: window, ModelType: "llm"}
}

// ModelFilter narrows a list of models.
type ModelFilter struct {
	Name     string   `query:"provider_name"`
	Type     string   `query:"provider_type"`
	Category []string `query:"provider_category,explode"`
}

// Excludes reports whether the filter rejects a model.
func (f ModelFilter) Excludes(m Model) bool {
	return f.Name != "" && m.ProviderName != f.Name || f.Type != "" && m.ProviderType != f.Type ||
		len(f.Category) > 0 && !slices.Contains(f.Category, m.ProviderCategory)
}

// EmbeddingModelOf returns the model that embeds texts, in Letta's shape. problem says what is wrong with the model's
// endpoint; it may be empty.
func EmbeddingModelOf(c files.EmbeddingConfig, problem string) EmbeddingModel {
	provider, _, _ := strings.Cut(c.Handle, "/")
	return EmbeddingModel{Handle: c.Handle, Name: c.Model, DisplayName: c.Model, ProviderType: "openai",
		ProviderName: provider, ModelType: "embedding", Dimension: c.Dimension, Model: c.Model,
		EndpointType: c.EndpointType, ChunkTokens: c.ChunkTokens, BatchSize: c.BatchSize, Problem: problem}
}
