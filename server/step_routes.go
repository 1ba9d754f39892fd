package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/tool"
)

func (s *Server) stepRoutes(a *rest.API) {
	a.For(rest.Tools).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/agents/{agent_id}/step",
		Summary: "take_step: Take a step of a loop of your own. It stores what the model answered, runs the memory tools " +
			"that the answer calls, and returns the next prompt with the calls that are the caller's.",
		Parameters:  []*huma.Param{rest.IDParam("agent_id", "agent")},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[StepBody](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "What was stored and run, and the next prompt.",
			Content: rest.Content[letta.Step](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.step(a, c) }, rest.Own)
}

// StepBody is a step of a loop outside of this server.
type StepBody struct{}

// Schema implements huma.SchemaProvider.
func (StepBody) Schema(huma.Registry) *huma.Schema {
	message := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	answer := map[string]any{"model": "gpt-4o", "choices": []any{map[string]any{"message": map[string]string{
		"role": "assistant", "content": "It was in room 2."}}}, "usage": map[string]int{"prompt_tokens": 3120}}
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Examples: []any{map[string]any{"otid": "step-7", "response": answer}}, Properties: map[string]*huma.Schema{
			"response": {Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: "What the model " +
				"answered, as its provider returned it: a chat completion of OpenAI's, a response of OpenAI's Responses API, " +
				"or a message of Anthropic's. A client that streams sends what it put together in one of these forms."},
			"messages": {Type: huma.TypeArray, Items: message, Description: "What follows the answer: results of the " +
				"caller's own tools, or the user's next message. " + messagesWords},
			"input": {Type: huma.TypeArray, Items: message, Description: "The name that OpenAI's Responses API has for " +
				"messages."},
			"otid": {Type: huma.TypeString, Description: "The caller's own id of the step. A step that is sent again with " +
				"it stores nothing twice and runs no tool twice."},
			"conversation_id": {Type: huma.TypeString, Nullable: true, Description: "Or \"default\", as if absent."},
			"usage": {Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: "What the provider " +
				"counted, if the response does not have it."},
			"format":  {Type: huma.TypeString, Enum: []any{"openai", "anthropic", "responses"}, Description: "Of the prompt."},
			"pending": {Type: huma.TypeString, Enum: []any{"keep", "answer"}, Description: "answer gives them one."},
		}}
}

func (s *Server) step(a *rest.API, c echo.Context) error {
	return s.withSpool(a, c, modelTimeout, func(ctx context.Context, of agent.Agent, body *rest.Spool) (any, error) {
		batch, err := capture.ReadStep(body, of.Zone())
		if err != nil {
			return nil, err
		}
		return s.takeStep(ctx, of, batch)
	})
}

// takeStep stores a step's messages, runs the memory tools that are called, and returns what comes next.
func (s *Server) takeStep(ctx context.Context, of agent.Agent, batch *capture.Batch) (out letta.Step, err error) {
	stored, err := s.append(ctx, of, batch)
	if err != nil {
		return out, err
	}
	r, err := s.newCallRunner(ctx, of, batch.Conversation)
	if err != nil {
		return out, err
	}
	out = letta.Step{ConversationID: stored.ConversationID, Messages: stored.Messages, Results: []letta.StepResult{},
		Calls: []letta.StepCall{}, Next: "model"}
	if batch.Step.Answer {
		calls, err := r.run(ctx, stored.Messages[0].Position)
		if err != nil {
			return out, err
		}
		for _, c := range calls {
			if c.Result != nil && r.runs(c.Name) {
				out.Results = append(out.Results, letta.StepResultOf(c))
			}
		}
	}
	target := agent.PromptTarget{AgentID: of.ID, Conversation: r.conversation.ID,
		Format: agent.Format(batch.Step.Format), AnswerPending: batch.Step.AnswerPending}
	prompt, calls, err := r.nextPrompt(ctx, target)
	if err != nil {
		return out, err
	}
	for _, c := range calls {
		out.Calls = append(out.Calls, letta.StepCallOf(c))
	}
	switch {
	case len(out.Calls) > 0:
		out.Next = "calls"
	case prompt.Answered:
		out.Next = "user"
	}
	out.Prompt, err = letta.PromptOf(prompt, nil)
	return out, err
}

// callRunner runs the memory tools that are called in a conversation.
type callRunner struct {
	*Server
	caller       tool.Caller
	conversation recall.Conversation
	tools        []tool.Tool
}

func (s *Server) newCallRunner(ctx context.Context, of agent.Agent, conversation string) (r callRunner, err error) {
	r = callRunner{Server: s, caller: caller(ctx, of)}
	if r.conversation, err = s.Recall.Conversation(ctx, r.caller.Org, of.ID, conversation); err != nil {
		return r, err
	}
	if !r.conversation.IsDefault {
		r.caller.Conversation = r.conversation.ID
	}
	has, err := s.Files.HasFolder(ctx, r.caller.Org, of.ID)
	r.tools = s.Tools.Of(of, has)
	return r, err
}

// runs reports whether a tool is one of the agent's memory tools. The caller runs the others.
func (r callRunner) runs(name string) bool {
	return slices.ContainsFunc(r.tools, func(t tool.Tool) bool { return t.Name == name && !t.ByClient })
}

// run runs the memory tools that the message at a position calls, unless the calls have results. It returns all calls
// of the message.
func (r callRunner) run(ctx context.Context, position int) ([]recall.AnsweredCall, error) {
	calls, err := r.Recall.CallsAt(ctx, r.caller.Org, r.conversation.Key, position)
	if err != nil {
		return nil, err
	}
	ran := false
	for _, c := range calls {
		if c.Result != nil || !r.runs(c.Name) {
			continue
		}
		at := recall.CallPlace{AgentID: r.caller.Agent.ID, Conversation: r.conversation.ID, ID: c.CallID,
			Position: position}
		if _, _, err := r.Tools.Answer(ctx, r.caller, tool.Call{CallPlace: at, Name: c.Name,
			Arguments: json.RawMessage(c.Input)}); err != nil {
			return nil, err
		}
		ran = true
	}
	if !ran {
		return calls, nil
	}
	return r.Recall.CallsAt(ctx, r.caller.Org, r.conversation.Key, position)
}

// nextPrompt returns the next prompt, and the calls for which it waits: those that are the caller's. Calls of memory
// tools that nobody has run yet are run.
func (r callRunner) nextPrompt(ctx context.Context, at agent.PromptTarget) (p agent.StoredPrompt,
	waiting []recall.AnsweredCall, err error) {
	p, err = r.Agents.NextPrompt(ctx, r.caller.Org, at)
	if err != nil || len(p.Pending) == 0 {
		return p, nil, err
	}
	calls, err := r.run(ctx, p.Pending[0].Position)
	if err != nil {
		return p, nil, err
	}
	for _, c := range calls {
		if c.Result == nil {
			waiting = append(waiting, c)
		}
	}
	if len(waiting) < len(p.Pending) {
		p, err = r.Agents.NextPrompt(ctx, r.caller.Org, at)
	}
	return p, waiting, err
}
