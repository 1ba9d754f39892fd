package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/db"
)

// Mode names what leaves a view and who writes the summary: the agent's own model in the modes self_…, else the
// default one, unless the settings name a model.
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

// Settings say when and how a conversation is compacted. Trigger and Goal are shares of the window, Percentage a share
// of the messages.
type Settings struct {
	Mode                  Mode            `json:"mode"`
	Model                 *string         `json:"model"` // provider/model; nil: the mode's
	ModelSettings         json.RawMessage `json:"model_settings"`
	Prompt                *string         `json:"prompt"` // nil: that of the mode
	PromptAcknowledgement bool            `json:"prompt_acknowledgement"`
	ClipChars             *int            `json:"clip_chars"`                // of a summary; nil: only its budget counts
	Percentage            float64         `json:"sliding_window_percentage"` // evicted by the first attempt
	Trigger               float64         `json:"trigger"`
	Goal                  float64         `json:"goal"`
	Warning               bool            `json:"warning"`          // warn the model at 75 % of the window
	Policy                json.RawMessage `json:"policy,omitempty"` // as package policy reads it; nil: none
}

// Defaults returns the settings of an agent that has none.
func Defaults() Settings {
	clip := 50_000
	return Settings{Mode: SlidingWindow, ClipChars: &clip, Percentage: 0.30, Trigger: 0.90, Goal: 0.70, Warning: true}
}

// Limit returns the tokens of a window above which a conversation is compacted.
func (s Settings) Limit(window int) int { return ratio.Share(s.Trigger, window) }

// Most returns the tokens of a window that no prompt exceeds: those up to the trigger, or less than 95 % of the window
// if what must stay takes more.
func (s Settings) Most(window int) int { return max(s.Limit(window), ratio.Share(forceAt, window)-1) }

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

// ParseSettings reads settings from a JSON object. An absent field has its value in base, and a null field its value
// in Defaults, but a null clip_chars is no limit. Unknown fields are ignored. A change of the mode resets the prompt,
// unless one is given. ErrInvalid if a value is out of its range.
func ParseSettings(raw []byte, base Settings) (Settings, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return base, base.Validate()
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return Settings{}, db.Invalid("compaction_settings must be a JSON object")
	}
	s, own := base, Defaults()
	for _, f := range []struct {
		name, want string
		to         any
		reset      func()
	}{
		{"mode", "a string", &s.Mode, func() { s.Mode = own.Mode }},
		{"model", "a string", &s.Model, func() { s.Model = own.Model }},
		{"model_settings", "an object", &s.ModelSettings, func() { s.ModelSettings = nil }},
		{"prompt", "a string", &s.Prompt, func() { s.Prompt = own.Prompt }},
		{"prompt_acknowledgement", "true or false", &s.PromptAcknowledgement,
			func() { s.PromptAcknowledgement = own.PromptAcknowledgement }},
		{"clip_chars", "a whole number", &s.ClipChars, func() { s.ClipChars = nil }},
		{"sliding_window_percentage", "a number", &s.Percentage, func() { s.Percentage = own.Percentage }},
		{"trigger", "a number", &s.Trigger, func() { s.Trigger = own.Trigger }},
		{"goal", "a number", &s.Goal, func() { s.Goal = own.Goal }},
		{"warning", "true or false", &s.Warning, func() { s.Warning = own.Warning }},
		{"policy", "a policy", &s.Policy, func() { s.Policy = nil }},
	} {
		value, ok := given[f.name]
		if !ok {
			continue
		}
		f.reset() // do not write through a pointer of base
		if string(value) != "null" && json.Unmarshal(value, f.to) != nil {
			return Settings{}, db.Invalid("compaction_settings.%s is %s; it must be %s", f.name, db.Short(string(value)), f.want)
		}
	}
	if _, explicit := given["prompt"]; s.Mode != base.Mode && !explicit {
		s.Prompt = nil
	}
	for _, text := range []**string{&s.Model, &s.Prompt} {
		if *text != nil && strings.TrimSpace(**text) == "" {
			*text = nil
		}
	}
	return s, s.Validate()
}

// Validate returns ErrInvalid with the first setting that is out of its range.
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

// within reports whether x is a number in a range.
func within(x, least, most float64) bool {
	return x >= least-ratio.Rounding && x <= most+ratio.Rounding
}

// Shares of the window that hold for all settings.
const (
	warnAt  = 0.75 // the model is warned from here on
	rearmBy = 0.05 // usage grows by this after a compaction before the trigger is armed again
	forceAt = 0.95 // nothing defers a compaction from here on
)

// MinBudget is the least budget of a summary in tokens: that of a plan may be close to zero.
const MinBudget = 128
