package compaction

import "encoding/json"

// Mode names what leaves a view and who writes the summary.
type Mode string

// The modes, as Letta names them.
const (
	SlidingWindow            Mode = "sliding_window"
	All                      Mode = "all"
	SelfCompactAll           Mode = "self_compact_all"
	SelfCompactSlidingWindow Mode = "self_compact_sliding_window"
)

// Settings say when and how a conversation is compacted. Trigger and Goal are shares of the window, Percentage one of the messages.
type Settings struct {
	Mode                  Mode            `json:"mode"`
	Model                 *string         `json:"model"` // provider/model; nil for the endpoint's default, or the agent's own where the mode is self_…
	ModelSettings         json.RawMessage `json:"model_settings"`
	Prompt                *string         `json:"prompt"` // nil for the mode's own
	PromptAcknowledgement bool            `json:"prompt_acknowledgement"`
	ClipChars             *int            `json:"clip_chars"`                // of a summary; nil for no limit but the budget
	Percentage            float64         `json:"sliding_window_percentage"` // of the messages that the first attempt evicts
	Trigger               float64         `json:"trigger"`
	Goal                  float64         `json:"goal"`
	Warning               bool            `json:"warning"` // whether the model sees a line at 75 % of the window
}

// Defaults are the settings of an agent that has none.
func Defaults() Settings {
	clip := 50_000
	return Settings{Mode: SlidingWindow, ClipChars: &clip, Percentage: 0.30, Trigger: 0.90, Goal: 0.70, Warning: true}
}
