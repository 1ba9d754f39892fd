package letta

import "github.com/loci-memory/loci/recall"

// Step is the answer to a step of an agent's loop.
type Step struct {
	ConversationID *string `json:"conversation_id" doc:"Null for the agent's default conversation."`

	Messages []recall.Appended `json:"messages" doc:"The places of the model's answer, and of the messages after it."`
	Results  []StepResult      `json:"tool_results" doc:"Of the memory tools that the answer calls."`
	Calls    []StepCall        `json:"calls" doc:"For the caller to run, before the model is asked again."`
	Prompt   Prompt            `json:"prompt"`

	// The model's turn, with the prompt's request; the caller's, to run the calls; or the user's.
	Next string `json:"next" enum:"model,calls,user" doc:"Whose turn it is; the user's if the answer calls no tool."`
}

// StepResult is what a memory tool returned.
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
}

// StepResultOf returns a call of a memory tool that has a result.
func StepResultOf(c recall.AnsweredCall) StepResult {
	return StepResult{ToolCallID: c.CallID, Name: c.Name, Status: statusOf(*c.Result), Return: c.Result.Text}
}

// StepCallOf returns a call that has no result.
func StepCallOf(c recall.AnsweredCall) StepCall {
	return StepCall{ToolCallID: c.CallID, Name: c.Name, Arguments: c.Input}
}
