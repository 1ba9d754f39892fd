package loop

// Statuses of runs and steps.
const (
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
	Succeeded = "success"
)

// Why a run stopped, under Letta's names.
const (
	EndTurn          = "end_turn"
	MaxSteps         = "max_steps"
	ToolRule         = "tool_rule"
	RequiresApproval = "requires_approval"
	StopCancelled    = "cancelled"
	MaxTokens        = "max_tokens_exceeded" //nolint:gosec // no credential
	StopError        = "error"
	ModelError       = "llm_api_error"
	BrokenAnswer     = "invalid_llm_response"
	BrokenCalls      = "invalid_tool_call"
	NoToolCall       = "no_tool_call"
	NoCredits        = "insufficient_credits"
	PromptTooLarge   = "context_window_overflow_in_system_prompt"
)

// statusOf returns the status of a run that stopped for a reason, as in Letta.
func statusOf(stop string) string {
	switch stop {
	case EndTurn, MaxSteps, ToolRule, RequiresApproval:
		return Completed
	case StopCancelled:
		return Cancelled
	}
	return Failed
}
