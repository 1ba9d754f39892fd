package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/db"
)

// Mode says what leaves a view, and which model writes the summary: the agent's own in the modes self_…, otherwise the
// default one. The settings may name another model.
type Mode string

// The modes, as Letta names them.
const (
	SlidingWindow            Mode = "sliding_window"
	All                      Mode = "all"
	SelfCompactAll           Mode = "self_compact_all"
	SelfCompactSlidingWindow Mode = "self_compact_sliding_window"
)

// Modes lists the modes.
var Modes = []Mode{SlidingWindow, All, SelfCompactAll, SelfCompactSlidingWindow}

// Settings say when and how a conversation is compacted. Trigger and Goal are shares of the window; Percentage is a
// share of the messages.
type Settings struct {
	Mode                  Mode            `json:"mode"`
	Model                 *string         `json:"model"` // provider/model; nil: the mode's model
	ModelSettings         json.RawMessage `json:"model_settings"`
	Prompt                *string         `json:"prompt"` // nil: the mode's prompt
	PromptAcknowledgement bool            `json:"prompt_acknowledgement"`
	ClipChars             *int            `json:"clip_chars"`                // characters of a summary; nil: its budget
	Percentage            float64         `json:"sliding_window_percentage"` // share that the first attempt evicts
	Trigger               float64         `json:"trigger"`
	Goal                  float64         `json:"goal"`
	Warning               bool            `json:"warning"`          // warn the model at 75 % of the window
	Policy                json.RawMessage `json:"policy,omitempty"` // in the form that package policy reads; nil: none

	// Focus is what a caller asks the summary of one compaction to keep above all; empty: nothing.
	Focus string `json:"-"`
}

// Defaults returns the settings of an agent without any.
func Defaults() Settings {
	clip := 50_000
	return Settings{Mode: SlidingWindow, ClipChars: &clip, Percentage: 0.30, Trigger: 0.90, Goal: 0.70, Warning: true}
}

// Limit returns the tokens above which a conversation in this window is compacted.
func (s Settings) Limit(window int) int { return tokenmath.Share(s.Trigger, window) }

// Most returns the most tokens of any prompt in a window: up to the trigger, or just under 95 % of the window if the
// parts that must stay need more.
func (s Settings) Most(window int) int {
	return max(s.Limit(window), tokenmath.Share(forceAt, window)-1)
}

// AtMost returns the settings with a trigger as high as a prompt may be if the parts that must stay need more.
func (s Settings) AtMost() Settings {
	s.Trigger = max(s.Trigger, forceAt)
	return s
}

// Ranges of the settings.
const (
	MinTrigger            = 0.5
	MaxTrigger            = 0.98
	MinGoal               = 0.1
	GoalBelowTrigger      = 0.1
	MinPercentage         = 0.05
	MaxPercentage         = 0.95
	MinClipChars          = 100
	MaxPromptChars        = 20_000
	MaxModelBytes         = 512
	MaxModelSettingsBytes = 64 << 10
)

// ParseSettings reads settings from a JSON object. An absent field keeps its value in base, and null sets the value in
// Defaults; null for clip_chars means no limit. Unknown fields are ignored. A new mode resets the prompt unless one is
// given. ErrInvalid if a value is out of its range.
func ParseSettings(raw []byte, base Settings) (Settings, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return base, base.Validate()
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return Settings{}, db.Invalid("compaction_settings must be a JSON object")
	}
	s, defaults := base, Defaults()
	for _, f := range []struct {
		name, want string
		to         any
		reset      func()
	}{
		{"mode", "a string", &s.Mode, func() { s.Mode = defaults.Mode }},
		{"model", "a string", &s.Model, func() { s.Model = defaults.Model }},
		{"model_settings", "an object", &s.ModelSettings, func() { s.ModelSettings = nil }},
		{"prompt", "a string", &s.Prompt, func() { s.Prompt = defaults.Prompt }},
		{"prompt_acknowledgement", "true or false", &s.PromptAcknowledgement,
			func() { s.PromptAcknowledgement = defaults.PromptAcknowledgement }},
		{"clip_chars", "a whole number", &s.ClipChars, func() { s.ClipChars = nil }},
		{"sliding_window_percentage", "a number", &s.Percentage, func() { s.Percentage = defaults.Percentage }},
		{"trigger", "a number", &s.Trigger, func() { s.Trigger = defaults.Trigger }},
		{"goal", "a number", &s.Goal, func() { s.Goal = defaults.Goal }},
		{"warning", "true or false", &s.Warning, func() { s.Warning = defaults.Warning }},
		{"policy", "a policy", &s.Policy, func() { s.Policy = nil }},
	} {
		value, ok := fields[f.name]
		if !ok {
			continue
		}
		f.reset() // do not write through base's pointer
		if string(value) != "null" && json.Unmarshal(value, f.to) != nil {
			return Settings{}, db.Invalid("compaction_settings.%s is %s; it must be %s", f.name, db.Short(string(value)), f.want)
		}
	}
	if _, explicit := fields["prompt"]; s.Mode != base.Mode && !explicit {
		s.Prompt = nil
	}
	for _, text := range []**string{&s.Model, &s.Prompt} {
		if *text != nil && strings.TrimSpace(**text) == "" {
			*text = nil
		}
	}
	return s, s.Validate()
}

// Validate returns ErrInvalid for the first setting that is out of its range.
func (s Settings) Validate() error {
	switch {
	case !slices.Contains(Modes, s.Mode):
		return db.Invalid("compaction_settings.mode is %q; it must be one of %s, %s, %s, %s",
			db.Short(string(s.Mode)), SlidingWindow, All, SelfCompactAll, SelfCompactSlidingWindow)
	case !within(s.Trigger, MinTrigger, MaxTrigger):
		return db.Invalid("compaction_settings.trigger is %v; it must be from %v to %v", s.Trigger, MinTrigger, MaxTrigger)
	case !within(s.Goal, MinGoal, s.Trigger-GoalBelowTrigger):
		return db.Invalid("compaction_settings.goal is %v; it must be from %v to %.2f, which is %v below the trigger",
			s.Goal, MinGoal, s.Trigger-GoalBelowTrigger, GoalBelowTrigger)
	case !within(s.Percentage, MinPercentage, MaxPercentage):
		return db.Invalid("compaction_settings.sliding_window_percentage is %v; it must be from %v to %v",
			s.Percentage, MinPercentage, MaxPercentage)
	case s.ClipChars != nil && *s.ClipChars < MinClipChars:
		return db.Invalid("compaction_settings.clip_chars is %d; it must be at least %d, or null for no limit", *s.ClipChars,
			MinClipChars)
	case s.Prompt != nil && utf8.RuneCountInString(*s.Prompt) > MaxPromptChars:
		return db.Invalid("compaction_settings.prompt has %d characters; it may have at most %d",
			utf8.RuneCountInString(*s.Prompt), MaxPromptChars)
	case s.Model != nil && len(*s.Model) > MaxModelBytes:
		return db.Invalid("compaction_settings.model has %d bytes; it may have at most %d", len(*s.Model), MaxModelBytes)
	case len(s.ModelSettings) > MaxModelSettingsBytes:
		return db.Invalid("compaction_settings.model_settings has %d bytes; it may have at most %d", len(s.ModelSettings),
			MaxModelSettingsBytes)
	case len(s.ModelSettings) > 0 && s.ModelSettings[0] != '{' && string(s.ModelSettings) != "null":
		return db.Invalid("compaction_settings.model_settings is %s; it must be an object", db.Short(string(s.ModelSettings)))
	}
	return nil
}

// within reports whether x is in a range, and a number.
func within(x, least, most float64) bool {
	return x >= least-tokenmath.Rounding && x <= most+tokenmath.Rounding
}

// Shares of the window that apply to all settings.
const (
	warnAt  = 0.75 // from here on the model is warned
	rearmBy = 0.05 // growth after a compaction that arms the trigger again
	forceAt = 0.95 // from here on nothing delays a compaction
)

// MinBudget is the smallest budget of a summary, in tokens. A plan's own number may be close to zero.
const MinBudget = 128
