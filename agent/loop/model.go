package loop

import (
	"errors"

	"github.com/loci-memory/loci/agent/loop/model"
)

// Model is a client, and the name of the model that it asks.
type Model struct {
	model.Client
	Name string // as its provider names it
}

// Provider returns the provider's name in Letta's words.
func (m Model) Provider() string {
	if m.Format() == model.FormatAnthropic {
		return "anthropic"
	}
	return "openai"
}

// ErrNoModel means that no model is configured for an agent.
var ErrNoModel = errors.New("no language model is configured")

// NoModel is the Failure type of a run that cannot go on because no model is configured for it.
const NoModel = "no_model"

// NoModelText tells a client what to do about an ErrNoModel.
func NoModelText(err error) string {
	return "This server cannot run the agent, because " + err.Error() + ": set LOCI_LLM_BASE_URL and LOCI_LLM_MODEL, " +
		"and for anthropic/ handles LOCI_ANTHROPIC_API_KEY. A loop of your own needs none of them: " +
		"GET /v1/agents/{agent_id}/prompt hands out prompts, and POST /v1/agents/{agent_id}/messages/capture stores turns"
}
