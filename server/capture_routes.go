package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) captureRoutes(a *rest.API) {
	a.For(rest.Tools).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/agents/{agent_id}/messages/capture",
		Summary:     "capture_messages: Store turns that were made elsewhere. All are stored, or none.",
		Parameters:  []*huma.Param{rest.IDParam("agent_id", "agent")},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[CaptureBody](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "What was appended.",
			Content: rest.Content[Captured](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.capture(a, c) }, rest.WithUsers)
}

// CaptureBody is a body with messages that other programs recorded.
type CaptureBody struct{}

// Schema implements huma.SchemaProvider.
func (CaptureBody) Schema(huma.Registry) *huma.Schema {
	message := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	turn := map[string]string{"role": "user", "content": "Where was the meeting?", "otid": "turn-1"}
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Examples: []any{map[string]any{"messages": []any{turn}}}, Properties: map[string]*huma.Schema{
			"messages": {Type: huma.TypeArray, Items: message, Description: messagesWords},
			"input": {Type: huma.TypeArray, Items: message, Description: "The name that OpenAI's Responses API has for " +
				"messages."},
			"conversation_id": {Type: huma.TypeString, Nullable: true, Description: "Or \"default\", as if absent."},
			"provider": {Type: huma.TypeString, Description: "In place of messages: what a proxy saw of a call, with " +
				"request_messages and response_dict."},
			"model": {Type: huma.TypeString, Description: "That answered, with provider."},
			"usage": {Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: "What the provider " +
				"counted in the call that the last message of the assistant answers: prompt_tokens, or input_tokens with " +
				"cache_read_input_tokens and cache_creation_input_tokens. It is preferred to an estimate."},
			"refused": refusedSchema("The provider refused the newest prompt of the conversation, which ends with these " +
				"messages, if there are any. " + refusedWords),
			"request_messages": {Type: huma.TypeArray, Items: message},
			"response_dict":    message,
		}}
}

const refusedWords = "If it is for what the prompt says (status 400, 413, 415 or 422, and neither a key, a model " +
	"nor a limit; 451; or words of moderation, a policy or an image), the refused turn leaves the model's view and " +
	"stays in the log. If the prompt is too long for the model, in the words of its provider, the conversation is " +
	"compacted."

// refusedSchema is the schema for a provider's refusal.
func refusedSchema(doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: doc,
		Required: []string{"status"}, Properties: map[string]*huma.Schema{
			"status": {Type: huma.TypeInteger, Minimum: new(200.0), Maximum: new(599.0),
				Description: "The HTTP status that the provider answered with, from 400 to 599; 200 if it withheld the whole " +
					"answer."},
			"message": {Type: huma.TypeString, Description: "The provider's words, which lists show redacted, and cut at 300 " +
				"characters."},
			"otid": {Type: huma.TypeString, Description: "The caller's own id of the report; that of a step if absent. The " +
				"same one again changes nothing."},
			"place": {Type: huma.TypeString, Enum: []any{"messages", "elsewhere"}, Description: "Where what is refused " +
				"stands: in the messages, if absent; or elsewhere in the prompt, as in a memory block or the system prompt. " +
				"Then no message leaves the view, and the turn that left it for the report before comes back."},
		}}
}

const messagesWords = "One message or several, each in the format of OpenAI's chat completions (roles system, " +
	"developer, user, assistant, tool), of Anthropic's messages, of OpenAI's Responses API (its items), or of Letta " +
	"(to be created, or as listed). Each may have otid, created_at or date, name, step_id, run_id, sender_id, " +
	"group_id and model. A message whose otid is there already is not stored again."

// Captured lists the messages that were appended, in the order of the request.
type Captured struct {
	ConversationID *string           `json:"conversation_id" doc:"Null for the agent's default conversation."`
	Messages       []recall.Appended `json:"messages"`

	Left []chat.PendingCall `json:"pending_tool_calls" doc:"That waited for the client, and now stay without a result."`

	Refused *recall.RefusedView `json:"refused,omitempty" doc:"What the refusal changed, if the request has one."`
}

// capture appends all messages of a body in one transaction. Only a chunk of them is in memory at a time.
func (s *Server) capture(a *rest.API, c echo.Context) error {
	return s.withSpool(a, c, batchTimeout, func(ctx context.Context, recipient agent.Agent, body *rest.Spool) (any,
		error) {
		batch, err := capture.Read(body, recipient.Zone())
		if err != nil {
			return nil, err
		}
		batch.IsSystemPrompt = recipient.IsSystemPrompt
		return s.append(ctx, recipient, batch, recordOf(batch, true))
	})
}

// withSpool serves a request with a long body to an agent: it finds the agent, spools the body, and answers with what
// handle returns.
func (s *Server) withSpool(a *rest.API, c echo.Context, timeout time.Duration,
	handle func(context.Context, agent.Agent, *rest.Spool) (any, error)) error {
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	recipient, err := s.Agents.Agent(ctx, rest.Org(ctx), id)
	if err != nil {
		return err
	}
	body, err := a.Spool(c, maxCaptureBytes)
	if err != nil {
		return err
	}
	defer body.Close()
	out, err := handle(ctx, recipient, body)
	if err != nil {
		return err
	}
	return body.Warnings.Answer(c, http.StatusOK, out)
}

// recordOf returns the record to store for a batch. leaves says that calls without a result may wait for the client.
func recordOf(batch *capture.Batch, leaves bool) loop.Record {
	r := loop.Record{Conversation: batch.Conversation, Leaves: leaves, Answer: batch.Step != nil && batch.Step.Answer}
	if batch.Stores {
		r.Drafts = batch.Drafts()
	}
	if refusal := batch.Refused; refusal != nil {
		r.Refusal = &loop.Refusal{Status: refusal.Status, Message: refusal.Message, OTID: refusal.OTID,
			Elsewhere: refusal.Elsewhere}
	}
	if r.Answer && batch.Step.Ending == chat.Filtered {
		r.Refusal = &loop.Refusal{Status: http.StatusOK, Message: "content filter", OTID: batch.Step.OTID, Withheld: true}
	}
	return r
}

// append stores the record of a batch.
func (s *Server) append(ctx context.Context, recipient agent.Agent, batch *capture.Batch, r loop.Record) (Captured,
	error) {
	org := rest.Org(ctx)
	recorded, err := s.Loop.Record(ctx, org, recipient, r)
	if err != nil {
		return Captured{}, runProblem(batch.Locate(err))
	}
	appended, c := recorded.Messages, recorded.Conversation
	out := Captured{Messages: append([]recall.Appended{}, appended...), Left: recorded.Left, Refused: recorded.Refused}
	if !c.IsDefault {
		out.ConversationID = &c.ID
	}
	// The turns are stored: later failures must not fail the request.
	if batch.PromptTokens > 0 && batch.Stores && !batch.Reported(appended) {
		if err := s.Agents.ReportUsage(ctx, org, c, batch.PromptPosition(appended), batch.PromptTokens); err != nil {
			s.Log.WarnContext(ctx, "the usage of a prompt is not stored", "conversation", c.ID, "error", err)
		}
		if err := s.Agents.RecordUsage(ctx, org, c, batch.PromptPosition(appended), batch.Usage); err != nil {
			s.Log.WarnContext(ctx, "the usage of an answer is not stored", "conversation", c.ID, "error", err)
		}
	}
	if err := s.Agents.LearnRecorded(ctx, org, c, batch.Recorded(appended)); err != nil {
		s.Log.WarnContext(ctx, "the usage of recorded prompts is not learned", "conversation", c.ID, "error", err)
	}
	if err := s.Agents.AfterAppend(ctx, org, recipient, c); err != nil {
		s.Log.WarnContext(ctx, "what follows an append is not queued", "conversation", c.ID, "error", err)
	}
	return out, nil
}
