package policy

import (
	"slices"
	"sort"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// RestoreSkills shows the skills again that were loaded in the messages that left. A policy without this step works as
// if it had it, with these defaults.
type RestoreSkills struct {
	MaxSkillTokens int `json:"max_skill_tokens" min:"0" max:"1000000" doc:"Of one; a longer one is cut."`
	MaxTotalTokens int `json:"max_total_tokens" min:"0" max:"10000000" doc:"1/8 of the window, or half of what is free."`
}

func (*RestoreSkills) describe() Mechanism {
	return Mechanism{Name: "restore_skills", Stage: Restore, Source: "Claude Code",
		Words: "Shows loaded skills again as they are now, the newest first. A policy without this step does the same.",
		New:   func() Step { return defaultSkills() }}
}

func defaultSkills() *RestoreSkills {
	return &RestoreSkills{MaxSkillTokens: 5_000, MaxTotalTokens: 25_000}
}

// leastSkillShare is one part in so many of a window that loaded skills may take after a compaction even if less than
// twice as much is free: the summary is shorter then, or more messages leave.
const leastSkillShare = 8

// Restore returns the loaded skills, the newest first. It leaves out skills that are still in view, and those that the
// agent no longer has. Each leaves room for the beginnings of the older ones.
func (s *RestoreSkills) Restore(left, after clip.View, at Moment) (all []Restored) {
	loaded := s.loaded(left, after, at)
	if len(loaded) == 0 || s.MaxTotalTokens == 0 || s.MaxSkillTokens == 0 {
		return nil
	}
	free, others := max(at.restorable(after, s.MaxTotalTokens), 0), 0
	if !at.onlyFree {
		free = max(free, min(s.MaxTotalTokens, after.Window/leastSkillShare))
	}
	for _, r := range loaded {
		others += min(r.tokens(left), leastRestored)
	}
	for _, r := range loaded {
		others -= min(r.tokens(left), leastRestored)
		restored := s.within(left, r, at.Skills[skillOf(r)], min(s.MaxSkillTokens, free-others))
		free -= restored.Tokens
		all = append(all, restored)
	}
	return all
}

// loaded returns the newest result for each skill that left, the newest first.
func (s *RestoreSkills) loaded(left, after clip.View, at Moment) (all []result) {
	seen := map[string]bool{"": true}
	for r := range results(after) {
		seen[skillOf(r)] = true
	}
	for r := range results(left) {
		all = append(all, r)
	}
	slices.Reverse(all)
	return slices.DeleteFunc(all, func(r result) bool {
		name := skillOf(r)
		_, has := at.Skills[name]
		if seen[name] || at.Skills != nil && !has {
			return true
		}
		seen[name] = true
		return false
	})
}

// skillOf returns the name of the skill that a result loads; empty if it loads none.
func skillOf(r result) string {
	if r.call == nil || r.failed() || !matchesAny([]string{"*load_skill"}, r.call.Name) {
		return ""
	}
	return prose.LoadedSkill(r.p.Text)
}

// within returns a loaded skill cut to most tokens, with the text that it has now; empty: the one that was loaded. It
// is named only if there is no room, or if its text is no longer shown.
func (s *RestoreSkills) within(v clip.View, r result, now string, most int) Restored {
	name := skillOf(r)
	restored := Restored{Position: r.m.Position, Seq: r.m.Seq, Part: r.part, Skill: true, Source: "the skill " + name +
		", which " + prose.ToLoadSkill(name) + " shows", Tokens: r.tokens(v)}
	replaced := r.edit != nil && r.edit.Kind == clip.Current
	switch {
	case now != "" && now != r.p.Text || replaced:
		if now == "" {
			now = r.edit.Text
		}
		e := r.clip("restore_skills", 0)
		e.Kind = clip.Current
		fits := func(text string) bool {
			e.Text, e.Chars, e.Tokens = text, tokens.Chars(text), 0
			restored.Tokens = v.PartTokens(*r.m, r.part, &e)
			return restored.Tokens <= most
		}
		restored.Named = !fits(now) && !fits(longest(now, prose.ToLoadSkill(name), fits))
		restored.Cut = &e
	case !r.hasText():
		restored.Named = true
	case restored.Tokens <= most:
	case most < leastRestored:
		restored.Named = true
	default:
		cut := (&TokenClip{MaxTokens: most - noteTokens/2, HeadShare: 1}).clip(v, r, restored.Tokens)
		if r.edit != nil {
			cut.Chars = min(cut.Chars, r.edit.Chars)
		}
		cut.Step, cut.Text, cut.Tokens = "restore_skills", prose.ToLoadSkill(name)+" shows all", 0
		restored.Cut, restored.Tokens = &cut, v.PartTokens(*r.m, r.part, &cut)
	}
	if restored.Named {
		restored.Cut, restored.Tokens = nil, 0 // its line is within the summary's budget
	}
	return restored
}

// longest returns the longest beginning of a text that fits, in whole lines, followed by a sentence with the call that
// shows all. It returns the shortest if none fits.
func longest(text, call string, fits func(string) bool) string {
	lines := strings.SplitAfter(text, "\n")
	beginning := func(n int) string {
		return strings.TrimRight(strings.Join(lines[:n], ""), "\n") + "\n\nThis is its beginning. To load all of it, call: " +
			call
	}
	first := sort.Search(len(lines), func(i int) bool { return !fits(beginning(i + 1)) })
	return beginning(max(first, 1))
}
