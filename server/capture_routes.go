package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) captureRoutes(a *rest.API) {
	rest.Post(a, "/v1/agents/{agent_id}/messages/capture", "Keep turns that were made elsewhere", withAgent(s, s.capture),
		rest.BodyUpTo(maxCaptureBytes), rest.Unchecked)
}

// maxCaptureBytes limits a body of messages or passages: a whole conversation may come in one.
const maxCaptureBytes = 64 << 20

// CaptureBody is messages that other programs recorded.
type CaptureBody struct{ capture.Body }

// Schema implements huma.SchemaProvider.
func (CaptureBody) Schema(huma.Registry) *huma.Schema {
	message := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
		"messages": {Type: huma.TypeArray, Items: message, Description: "One message or several, each in the " +
			"format of OpenAI's chat (roles system, developer, user, assistant, tool) or of Letta (to be created, or as " +
			"listed). Each may have otid, created_at or date, name, step_id, run_id, sender_id, group_id and model. A " +
			"message whose otid is there already is not stored again."},
		"conversation_id": {Type: huma.TypeString, Nullable: true, Description: "Or \"default\", as if absent."},
		"provider": {Type: huma.TypeString, Description: "In place of messages: what a proxy saw of a call, with " +
			"request_messages and response_dict."},
		"model": {Type: huma.TypeString, Description: "That answered, with provider."},
		"usage": {Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: "What the provider " +
			"counted in the call that the last message of the assistant answers: prompt_tokens, or input_tokens with " +
			"cache_read_input_tokens and cache_creation_input_tokens. It is preferred to an estimate."},
		"request_messages": {Type: huma.TypeArray, Items: message},
		"response_dict":    message,
	}}
}

// Captured lists what was appended, in the order of the request.
type Captured struct {
	ConversationID *string           `json:"conversation_id" doc:"Null for the agent's default conversation."`
	Messages       []recall.Appended `json:"messages"`
}

func (s *Server) capture(ctx context.Context, of agent.Agent, in *struct {
	rest.OfAgent
	Body CaptureBody
}) (Captured, error) {
	batch, err := in.Body.Batch(of.Zone())
	if err != nil {
		return Captured{}, err
	}
	in.Body = CaptureBody{} // it may be large, and is no longer needed
	org := rest.Org(ctx)
	appended, c, err := s.Recall.AppendTo(ctx, org, of.ID, batch.Conversation, batch.Drafts())
	if err != nil {
		return Captured{}, batch.Locate(err)
	}
	out := Captured{Messages: appended}
	if !c.IsDefault {
		out.ConversationID = &c.ID
	}
	if batch.PromptTokens > 0 {
		err = s.Agents.ReportUsage(ctx, org, c, batch.PromptPosition(appended), batch.PromptTokens)
	}
	// The turns are stored, and the next prompt checks the window.
	if err := s.Agents.CheckWindowSoon(ctx, org, c); err != nil {
		s.Log.WarnContext(ctx, "a window check is not queued", "conversation", c.ID, "error", err)
	}
	return out, err
}
