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
	MaxTotalTokens int `json:"max_total_tokens" min:"0" max:"10000000" doc:"At most half of what is free. 0: none."`
}

func (*RestoreSkills) describe() Mechanism {
	return Mechanism{Name: "restore_skills", Stage: Restore, Source: "Claude Code",
		Words: "Shows loaded skills again as they are now, the newest first. A policy without this step does the same.",
		New:   func() Step { return defaultSkills() }}
}

func defaultSkills() *RestoreSkills {
	return &RestoreSkills{MaxSkillTokens: 5_000, MaxTotalTokens: 25_000}
}

// Restore returns the loaded skills, the newest first. It leaves out skills that are still in view, and those that the
// agent no longer has.
func (s *RestoreSkills) Restore(left, after clip.View, at Moment) (all []Restored) {
	seen := map[string]bool{}
	for r := range results(after) {
		seen[skillOf(r)] = true
	}
	var loaded []result
	for r := range results(left) {
		loaded = append(loaded, r)
	}
	free := -1 // not known yet: most compactions have no skills to show
	for _, r := range slices.Backward(loaded) {
		name := skillOf(r)
		now, has := at.Skills[name]
		if name == "" || seen[name] || at.Skills != nil && !has {
			continue
		}
		if free < 0 {
			free = max(at.restorable(after, s.MaxTotalTokens), 0)
		}
		seen[name] = true
		if s.MaxTotalTokens == 0 || s.MaxSkillTokens == 0 {
			continue
		}
		restored := s.within(left, r, now, free)
		free -= restored.Tokens
		all = append(all, restored)
	}
	return all
}

// skillOf returns the name of the skill that a result loads; empty if it loads none.
func skillOf(r result) string {
	if r.call == nil || r.failed() || !matchesAny([]string{"*load_skill"}, r.call.Name) {
		return ""
	}
	return prose.LoadedSkill(r.p.Text)
}

// within returns a loaded skill cut to the tokens that it may take, with the text that it has now; empty: the one that
// was loaded. It is named only if there is no room, or if its text is no longer shown.
func (s *RestoreSkills) within(v clip.View, r result, now string, free int) Restored {
	name, most := skillOf(r), min(s.MaxSkillTokens, free)
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
