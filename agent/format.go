package agent

// Format names a provider's API.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"    // chat completions
	Anthropic Format = "anthropic" // messages
	Responses Format = "responses" // OpenAI's Responses API
)
