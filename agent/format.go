package agent

// Format names the provider whose API a request is for.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"    // chat completions
	Anthropic Format = "anthropic" // messages
	Responses Format = "responses" // OpenAI's Responses API
)
