package letta

import (
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Step is the answer to a step of an agent loop that runs outside of the server.
type Step struct {
	ConversationID *string `json:"conversation_id" doc:"Null for the agent's default conversation."`

	Messages []recall.Appended `json:"messages" doc:"The places of the model's answer, and of the messages after it."`
	Results  []StepResult      `json:"tool_results" doc:"Of the memory tools that the answer calls."`
	Calls    []StepCall        `json:"calls" doc:"For the caller to run or to decide, before the model is asked again."`
	Prompt   Prompt            `json:"prompt"`

	Refused *recall.RefusedView `json:"refused,omitempty" doc:"What the refusal changed, if the step reports one."`

	Reason *string `json:"stop_reason" doc:"tool_rule or max_tokens_exceeded, if that ends the turn; else null."`

	// model: send the request of prompt to the model; calls: run the calls; user: wait for the user.
	Next string `json:"next" enum:"model,calls,user" doc:"Whose turn it is; the user's if the answer calls no tool."`
}

// StepResult is the result of a memory tool.
type StepResult struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name" doc:"Of the tool."`
	Status     string `json:"status" enum:"success,error"`
	Return     string `json:"tool_return" doc:"As it is in the log."`
}

// StepCall is a call of one of the caller's own tools.
type StepCall struct {
	ToolCallID string `json:"tool_call_id" doc:"Send the result with this id."`
	Name       string `json:"name" doc:"Of the tool."`
	Arguments  string `json:"arguments" doc:"JSON, as the model wrote it."`
	Reason     string `json:"reason" enum:"own_tool,requires_approval" doc:"Why it is the caller's."`
}

// NewStep returns the answer to a step that stored messages.
func NewStep(conversation *string, stored []recall.Appended) Step {
	return Step{ConversationID: conversation, Messages: append([]recall.Appended{}, stored...), Results: []StepResult{},
		Calls: []StepCall{}, Next: "model"}
}

// AddResults adds the results of the calls that the server ran.
func (s *Step) AddResults(calls []loop.ClientLoopCall) {
	for _, c := range calls {
		if c.Ran {
			s.Results = append(s.Results, StepResultOf(c.AnsweredCall))
		}
	}
}

// SetNext sets what comes next. ending is how the model's answer ended, as package chat names it.
func (s *Step) SetNext(next loop.Next, ending string) (err error) {
	for _, c := range next.Calls {
		s.Calls = append(s.Calls, stepCallOf(c))
	}
	switch {
	case len(s.Calls) > 0:
		s.Next = "calls"
	case next.Ended:
		s.Next, s.Reason = "user", new(loop.ToolRule)
	case next.GaveUp:
		s.Next, s.Reason = "user", new(loop.NoToolCall)
	case s.Refused != nil && (s.Refused.Closed || next.Empty || next.Prompt.Unasked && !s.Refused.AskAgain):
		s.Next = "user" // the view has no message to answer, or only one of a turn that failed before
	case (next.Answered || next.Prompt.Answered) && !next.Reminded && ending != chat.Paused:
		s.Next = "user"
	}
	if ending == chat.Length && s.Next == "user" && s.Reason == nil {
		s.Reason = new(loop.MaxTokens)
	}
	s.Prompt, err = PromptOf(next.Prompt, nil)
	return err
}

// StepResultOf returns the result of a call of a memory tool.
func StepResultOf(c recall.AnsweredCall) StepResult {
	return StepResult{ToolCallID: c.CallID, Name: c.Name, Status: StatusOf(*c.Result), Return: c.Result.Text}
}

// stepCallOf returns a call without a result.
func stepCallOf(c loop.ClientLoopCall) StepCall {
	call := StepCall{ToolCallID: c.CallID, Name: c.Name, Arguments: c.Input, Reason: "own_tool"}
	if c.NeedsApproval {
		call.Reason = loop.RequiresApproval
	}
	return call
}
