package server

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) previewRoutes(a *rest.API) {
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/messages/preview-raw-payload",
		"preview_prompt: Get the request to an agent's model that messages would make. It stores nothing, and compacts "+
			"nothing.",
		func(ctx context.Context, input *struct {
			rest.OfAgent
			Body struct {
				PreviewBody
				letta.OfDefault
			}
		}) (rest.Object, error) {
			err := input.Body.CheckConversation(recall.DefaultConversation,
				"POST /v1/conversations/{conversation_id}/messages/preview-raw-payload")
			if err != nil {
				return nil, err
			}
			return s.preview(ctx, agent.PromptTarget{AgentID: string(input.AgentID),
				Conversation: recall.DefaultConversation}, input.Body.PreviewBody)
		})
	rest.Post(a.For(rest.Tools), "/v1/conversations/{conversation_id}/messages/preview-raw-payload",
		"preview_conversation_prompt: Get the request to a model that messages in a conversation would make. It stores "+
			"nothing, and compacts nothing.",
		func(ctx context.Context, input *struct {
			rest.OfConversation
			WithAgent
			Body struct {
				PreviewBody
				AgentID rest.Opt[string] `json:"agent_id,omitzero" doc:"Of the conversation 'default'."`
			}
		}) (rest.Object, error) {
			c, err := s.named(ctx, input.OfConversation, input.AgentID, input.Body.AgentID.Value)
			if err != nil {
				return nil, err
			}
			return s.preview(ctx, agent.PromptTarget{AgentID: c.AgentID, Conversation: c.ID}, input.Body.PreviewBody)
		})
}

// PreviewBody holds the messages for a preview; they are not sent.
type PreviewBody struct {
	Messages SentMessages `json:"messages,omitempty"`
	Input    SentMessages `json:"input,omitempty"`
}

// SentMessages are messages in any format that capture reads, or a text of the user.
type SentMessages json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (m *SentMessages) UnmarshalJSON(raw []byte) error {
	*m = append(SentMessages(nil), raw...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (SentMessages) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Messages in any of the formats of capture, or a text of the user or its parts."}
}

// preview returns the request to the model that the messages would make.
func (s *Server) preview(ctx context.Context, target agent.PromptTarget, sent PreviewBody) (rest.Object, error) {
	recipient, err := s.Agents.Agent(ctx, rest.Org(ctx), target.AgentID)
	if err != nil {
		return nil, err
	}
	messages := json.RawMessage(sent.Messages)
	if !given(messages) {
		messages = capture.Input(json.RawMessage(sent.Input))
	}
	batch, drafts := capture.OfMessages(messages, recipient.Zone()), iter.Seq2[recall.Draft, error](nil)
	if given(messages) {
		drafts = batch.Drafts()
	}
	target.LettasLayout = recipient.MadeFor() == agent.ForLetta
	request, err := s.Agents.Preview(ctx, rest.Org(ctx), target, drafts)
	return rest.Object(request), batch.Locate(err)
}

// given reports whether the JSON holds any messages.
func given(messages json.RawMessage) bool {
	return len(messages) > 0 && string(messages) != "null" && string(messages) != "[]"
}
