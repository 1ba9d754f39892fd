package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/capture"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
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
	}, func(c echo.Context) error { return s.step(a, c) }, rest.Own, rest.WithUsers)
}

// StepBody is a step of an agent loop that runs outside of this server.
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
			"format": {Type: huma.TypeString, Enum: []any{"openai", "anthropic", "responses"}, Description: "Of the prompt."},
			"approvals": {Type: huma.TypeArray, Description: "Of calls that need one: those that are approved are run. A step " +
				"may have nothing else.", Items: &huma.Schema{Type: huma.TypeObject, Required: []string{"tool_call_id", "approve"},
				Properties: map[string]*huma.Schema{
					"tool_call_id": {Type: huma.TypeString, Description: "Of the call."},
					"approve":      {Type: huma.TypeBoolean, Description: "Whether it is run."},
					"reason":       {Type: huma.TypeString, Nullable: true, Description: "For the model to read, if it is not run."},
				}}},
			"pending": {Type: huma.TypeString, Enum: []any{"keep", "answer"}, Description: "answer gives them one."},
			"accept": {Type: huma.TypeString, Enum: []any{"flush"}, Description: "The caller's loop takes silent turns: the " +
				"next prompt may have the purpose flush."},
			"policy": {Description: "How the window of the next prompt is kept: the name of a policy, or as in " +
				"compaction_settings. The edits that it makes stay."},
			"recall": {Type: huma.TypeObject, Nullable: true, Description: "What is recalled for the user's message that the " +
				"next prompt ends with, as in the agent's setting recall, and in its place."},
			"refused": refusedSchema("The provider refused the last prompt, in place of a response. " + refusedWords),
			"purpose": {Type: huma.TypeString, Enum: []any{"flush"}, Description: "The response answers a prompt of this " +
				"purpose. It is kept out of the conversation's prompts."},
		}}
}

func (s *Server) step(a *rest.API, c echo.Context) error {
	return s.withSpool(a, c, modelTimeout, func(ctx context.Context, owner agent.Agent, body *rest.Spool) (any, error) {
		batch, err := capture.ReadStep(body, owner.Zone())
		if err != nil {
			return nil, err
		}
		batch.IsSystemPrompt = owner.IsSystemPrompt
		if err := policy.Check(batch.Step.Policy); err != nil {
			return nil, rest.Unprocessable("policy", err.Error())
		}
		if _, err := agent.ParseRecall(batch.Step.Recall); err != nil {
			return nil, rest.Unprocessable("recall", err.Error())
		}
		return s.takeStep(ctx, owner, batch)
	})
}

// checkAnsweredOnce returns an error if a step both decides a call (approves or denies it) and has the call's result.
func checkAnsweredOnce(batch *capture.Batch) error {
	if len(batch.Step.Approvals) == 0 || !batch.Stores {
		return nil
	}
	for d, err := range batch.Drafts() {
		if err != nil {
			return err
		}
		for _, p := range d.Content {
			if p.Type == recall.ToolReturn && slices.ContainsFunc(batch.Step.Approvals,
				func(a capture.Approval) bool { return a.CallID == p.CallID }) {
				return rest.Unprocessable("approvals", fmt.Sprintf("the call %s has a result in the same step: send one "+
					"approval, denial or result of it", db.Short(p.CallID)))
			}
		}
	}
	return nil
}

// takeStep stores a step's messages, runs the memory tools that the step calls, and returns what comes next.
func (s *Server) takeStep(ctx context.Context, owner agent.Agent, batch *capture.Batch) (out letta.Step, err error) {
	o, err := s.Loop.NewClientLoop(ctx, rest.Org(ctx), owner, batch.Conversation)
	if err != nil {
		return out, err
	}
	if err := s.Loop.RefuseBusy(ctx, rest.Org(ctx), o.Conversation); err != nil {
		return out, runProblem(err)
	}
	if batch.Refused != nil {
		if err := agent.CheckNotEmpty(o.Conversation); err != nil {
			return out, err
		}
	}
	if batch.Step.Purpose == recall.ForFlush && batch.Refused != nil {
		if err := o.RefuseFlush(ctx, batch.Refused.Message); err != nil {
			return out, err
		}
		return s.nextOf(ctx, owner, o, batch, letta.NewStep(conversationOf(o), nil))
	}
	if batch.Step.Purpose == recall.ForFlush {
		return s.takeFlush(ctx, owner, o, batch)
	}
	if err := checkAnsweredOnce(batch); err != nil {
		return out, err
	}
	approvals := rest.Each(batch.Step.Approvals, func(a capture.Approval) loop.Approval {
		return loop.Approval{CallID: a.CallID, Approve: a.Approve, Reason: a.Reason}
	})
	record := recordOf(batch, batch.Step.AnswerPending)
	if record.Answer {
		if record.Drafts, err = o.Asking(ctx, record.Drafts); err != nil {
			return out, err
		}
	}
	if len(approvals) > 0 && batch.Stores {
		if err := o.Try(ctx, approvals, record); err != nil {
			return out, runProblem(batch.Locate(err))
		}
	}
	approved, err := o.Approve(ctx, approvals)
	if err != nil {
		return out, err
	}
	stored := Captured{ConversationID: conversationOf(o)}
	if batch.Stores || batch.Refused != nil {
		if stored, err = s.append(ctx, owner, batch, record); err != nil {
			return out, err
		}
		defer func() {
			if err != nil && (ctx.Err() != nil || db.Unavailable(err)) { // the client will send the step again
				s.Loop.KeepUnconfirmed(ctx, rest.Org(ctx), o.Conversation, recall.Unconfirmed{IDs: loop.IDsOf(stored.Messages)})
			}
		}()
	}
	out = letta.NewStep(stored.ConversationID, stored.Messages)
	out.Refused = stored.Refused
	out.AddResults(approved)
	if batch.Step.Answer {
		calls, err := o.Run(ctx, stored.Messages[0].Position)
		if err != nil {
			return out, err
		}
		out.AddResults(calls)
	}
	o.Paused = batch.Step.Ending == chat.Paused
	return s.nextOf(ctx, owner, o, batch, out)
}

// conversationOf returns the id of a conversation; nil for the agent's default one.
func conversationOf(o *loop.ClientLoop) *string {
	if o.Conversation.IsDefault {
		return nil
	}
	return &o.Conversation.ID
}

// nextOf adds what comes next to the answer to a step: a silent turn if one is due and the caller takes it, else the
// next prompt.
func (s *Server) nextOf(ctx context.Context, owner agent.Agent, o *loop.ClientLoop, batch *capture.Batch,
	out letta.Step) (letta.Step, error) {
	target := agent.PromptTarget{AgentID: owner.ID, Conversation: o.Conversation.ID,
		Format:        agent.Format(batch.Step.Format),
		AnswerPending: batch.Step.AnswerPending}
	target.Recall, _ = agent.ParseRecall(batch.Step.Recall) // it was checked before
	if len(batch.Step.Policy) > 0 {
		settings, err := json.Marshal(map[string]json.RawMessage{"policy": batch.Step.Policy})
		if err != nil {
			return out, err
		}
		target.Compaction = settings
	}
	if batch.Step.Accepts && !o.Paused {
		silent, err := o.NextFlush(ctx, target)
		if err != nil {
			return out, err
		}
		if silent != nil {
			out.Prompt, err = letta.PromptOf(*silent, nil)
			return out, err
		}
	}
	next, err := o.Next(ctx, target)
	if err != nil {
		return out, err
	}
	return out, out.SetNext(next, batch.Step.Ending)
}

// takeFlush stores the model's answer to a silent turn, runs the memory tools that the answer calls, and returns what
// comes next.
func (s *Server) takeFlush(ctx context.Context, owner agent.Agent, o *loop.ClientLoop, batch *capture.Batch) (
	letta.Step, error) {
	appended, calls, err := o.TakeFlush(ctx, batch.Drafts(), batch.Step.Accepts)
	if err != nil {
		return letta.Step{}, runProblem(batch.Locate(err))
	}
	out := letta.NewStep(conversationOf(o), appended)
	out.AddResults(calls)
	batch.Step.Ending = ""
	return s.nextOf(ctx, owner, o, batch, out)
}
