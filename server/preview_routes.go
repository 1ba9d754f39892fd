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
		func(ctx context.Context, in *struct {
			rest.OfAgent
			Body struct {
				PreviewBody
				letta.OfDefault
			}
		}) (rest.Object, error) {
			err := in.Body.CheckConversation(recall.DefaultConversation,
				"POST /v1/conversations/{conversation_id}/messages/preview-raw-payload")
			if err != nil {
				return nil, err
			}
			return s.preview(ctx, agent.PromptTarget{AgentID: string(in.AgentID),
				Conversation: recall.DefaultConversation}, in.Body.PreviewBody)
		})
	rest.Post(a.For(rest.Tools), "/v1/conversations/{conversation_id}/messages/preview-raw-payload",
		"preview_conversation_prompt: Get the request to a model that messages in a conversation would make. It stores "+
			"nothing, and compacts nothing.",
		func(ctx context.Context, in *struct {
			rest.OfConversation
			WithAgent
			Body struct {
				PreviewBody
				AgentID rest.Opt[string] `json:"agent_id,omitzero" doc:"Of the conversation 'default'."`
			}
		}) (rest.Object, error) {
			c, err := s.named(ctx, in.OfConversation, in.AgentID, in.Body.AgentID.Value)
			if err != nil {
				return nil, err
			}
			return s.preview(ctx, agent.PromptTarget{AgentID: c.AgentID, Conversation: c.ID}, in.Body.PreviewBody)
		})
}

// PreviewBody is the messages of a request that is not sent.
type PreviewBody struct {
	Messages SentMessages `json:"messages,omitempty"`
	Input    SentMessages `json:"input,omitempty"`
}

// SentMessages are messages in any of the formats that capture reads, or a text of the user.
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

// preview returns the request that messages would make.
func (s *Server) preview(ctx context.Context, at agent.PromptTarget, sent PreviewBody) (rest.Object, error) {
	of, err := s.Agents.Agent(ctx, rest.Org(ctx), at.AgentID)
	if err != nil {
		return nil, err
	}
	messages := json.RawMessage(sent.Messages)
	if !given(messages) {
		messages = capture.Input(json.RawMessage(sent.Input))
	}
	batch, drafts := capture.OfMessages(messages, of.Zone()), iter.Seq2[recall.Draft, error](nil)
	if given(messages) {
		drafts = batch.Drafts()
	}
	request, err := s.Agents.Preview(ctx, rest.Org(ctx), at, drafts)
	return rest.Object(request), batch.Locate(err)
}

// given reports whether there are messages.
func given(messages json.RawMessage) bool {
	return len(messages) > 0 && string(messages) != "null" && string(messages) != "[]"
}
