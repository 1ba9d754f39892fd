package agent

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// SkillSettings say which of an agent's skills its prompts show. Nil fields use defaults.
type SkillSettings struct {
	Preload []string `json:"preload,omitempty" required:"false" nullable:"false" doc:"They begin each conversation."`

	ListTokens    *int `json:"list_tokens,omitempty" required:"false" minimum:"0" doc:"Of the list; 1 % of the window."`
	PreloadTokens *int `json:"preload_tokens,omitempty" required:"false" minimum:"0" doc:"Of all; 1/4 of the window."`
}

// Bounds of the settings of skills, and their defaults in tokens.
const (
	maxPreloaded     = 20
	maxSkillName     = 64 // characters
	maxSkillTokens   = 1_000_000
	listShare        = 100 // the list takes one part in so many of the window
	leastListTokens  = 200
	preloadShare     = 4
	mostPreloadTotal = 25_000
)

// LoadSkill is the name of the tool that loads a skill.
const LoadSkill = "load_skill"

// check returns ErrInvalid for the first setting with a wrong value.
func (s SkillSettings) check() error {
	if len(s.Preload) > maxPreloaded {
		return db.Invalid("skills.preload has %d names; it may have %d", len(s.Preload), maxPreloaded)
	}
	for _, name := range s.Preload {
		if n := utf8.RuneCountInString(name); strings.TrimSpace(name) == "" || n > maxSkillName {
			return db.Invalid("skills.preload has the name %q of %d characters; a name has from 1 to %d", db.Short(name), n,
				maxSkillName)
		}
		if err := db.CheckUTF8("skills.preload", name); err != nil {
			return err
		}
	}
	for _, of := range []struct {
		name  string
		value *int
	}{{"list_tokens", s.ListTokens}, {"preload_tokens", s.PreloadTokens}} {
		if of.value != nil && (*of.value < 0 || *of.value > maxSkillTokens) {
			return db.Invalid("skills.%s is %d; it must be from 0 to %d", of.name, *of.value, maxSkillTokens)
		}
	}
	return nil
}

// preload returns the names of the skills that begin a conversation.
func (s *SkillSettings) preload() []string {
	if s == nil {
		return nil
	}
	return s.Preload
}

// listTokens returns how many tokens the list of skills may take in a window.
func (s *SkillSettings) listTokens(window int) int {
	if s != nil && s.ListTokens != nil {
		return *s.ListTokens
	}
	return max(window/listShare, leastListTokens)
}

// preloadTokens returns how many tokens the preloaded skills may take together in a window.
func (s *SkillSettings) preloadTokens(window int) int {
	if s != nil && s.PreloadTokens != nil {
		return *s.PreloadTokens
	}
	return min(window/preloadShare, mostPreloadTotal)
}
