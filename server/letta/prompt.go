package letta

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/server/rest"
)

// InContext is the content of an agent's window: an agent.Overview, or a Prompt.
type InContext struct {
	Value any
}

// MarshalJSON implements json.Marshaler.
func (c InContext) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keeps the bytes of a stored prompt
	err := e.Encode(c.Value)
	return b.Bytes(), err
}

// Schema implements huma.SchemaProvider.
func (InContext) Schema(r rest.Registry) *rest.Schema {
	return rest.OneOf(r, reflect.TypeFor[agent.Overview](), reflect.TypeFor[Prompt]())
}

// Prompt is a prompt that was handed out.
type Prompt struct {
	agent.StoredPrompt
	Request rest.Object `json:"request" doc:"In the provider's format: tools, system prompt and messages."`
	Rebuilt bool        `json:"rebuilt,omitzero" doc:"Made now, with today's memory and files."`
}

// PromptOf returns a stored prompt in the API's shape. It passes err on.
func PromptOf(h agent.StoredPrompt, err error) (Prompt, error) {
	return Prompt{StoredPrompt: h, Request: rest.Object(h.Request)}, err
}
