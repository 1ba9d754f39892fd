package main

// embedding holds the settings of the embeddings endpoint.
type embedding struct {
	BaseURL    string `env:"BASE_URL" help:"OpenAI-compatible endpoint: http://localhost:11434/v1. Empty: built-in model."`
	APIKey     secret `name:"api-key" env:"API_KEY" help:"Key of the embeddings endpoint, if it asks for one."`
	Model      string `env:"MODEL" help:"Model that the embeddings endpoint is asked for."`
	Dimensions int    `env:"DIMENSIONS" help:"Dimension of the vectors to ask for (default: the model's own)."`
}

// nextEmbedding holds the settings of the embeddings endpoint for the vectors that 'loci reembed' makes.
type nextEmbedding struct {
	BaseURL    string `env:"BASE_URL" help:"Endpoint of the model that 'loci reembed' switches to."`
	APIKey     secret `name:"api-key" env:"API_KEY" help:"Key of that endpoint, if it asks for one."`
	Model      string `env:"MODEL" help:"Model that 'loci reembed' switches to."`
	Dimensions int    `env:"DIMENSIONS" help:"Dimension of its vectors (default: the model's own)."`
}
