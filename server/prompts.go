package server

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/rest"
)

// InContext is what fills an agent's window: an agent.Overview, or a prompt that was handed out.
type InContext struct {
	value any
}

// MarshalJSON implements json.Marshaler.
func (c InContext) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a prompt's bytes are as they were
	err := e.Encode(c.value)
	return b.Bytes(), err
}

// Schema implements huma.SchemaProvider.
func (InContext) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[agent.Overview](), true, ""), r.Schema(reflect.TypeFor[Prompt](), true, "")}}
}

// Prompt is a prompt that was handed out.
type Prompt struct {
	agent.StoredPrompt
	Request rest.Object `json:"request" doc:"As the provider takes it: tools, system prompt, messages. Add what the provider wants to know of the answer."`
}

func promptOf(h agent.StoredPrompt, err error) (Prompt, error) {
	return Prompt{StoredPrompt: h, Request: rest.Object(h.Request)}, err
}

// agentPrompt hands out what the agent's model is to be sent next.
func (s *Server) agentPrompt(ctx context.Context, in *struct {
	rest.OfAgent
	Conversation rest.ConversationID `query:"conversation_id" doc:"The default one if absent."`
	Format       string              `query:"format" enum:"openai,anthropic" doc:"The provider's API; that of the agent's model if absent."`
}) (Prompt, error) {
	_, conversation := in.Conversation.Of("")
	return promptOf(s.Agents.NextPrompt(ctx, rest.Org(ctx), string(in.AgentID), conversation, agent.Format(in.Format)))
}

// agentContext shows what fills an agent's window, or filled it: all of the messages that the model sees are counted, the newest of them shown.
func (s *Server) agentContext(ctx context.Context, in *struct {
	rest.OfAgent
	Conversation rest.ConversationID `query:"conversation_id" doc:"The default one if absent. At most the newest 1,000 messages are shown."`
	AtSeq        int64               `query:"at_seq" minimum:"1" doc:"A position of the agent's events: the last prompt that was handed out there or before, byte for byte."`
}) (InContext, error) {
	org, id := rest.Org(ctx), string(in.AgentID)
	_, conversation := in.Conversation.Of("")
	if in.AtSeq > 0 {
		p, err := promptOf(s.Agents.PromptAt(ctx, org, id, conversation, in.AtSeq))
		return InContext{p}, err
	}
	o, messages, err := s.Agents.Overview(ctx, org, id, conversation)
	if err != nil {
		return InContext{}, err
	}
	for _, m := range messages {
		o.Messages = append(o.Messages, internalMessage(m))
	}
	return InContext{o}, nil
}
