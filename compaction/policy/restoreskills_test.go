package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// loads appends a call that loads a skill, and its result of size tokens.
func (t *talk) loads(name string, size int) *talk {
	t.called("load_skill", size, false)
	m := &t.Messages[len(t.Messages)-1]
	head := prose.SkillHead(name, "team/"+name+"/SKILL.md") + "\n\n"
	m.Content[0].Text = head + strings.ReplaceAll(m.Content[0].Text[len(head):], "the the the the ", "the the the,\n")
	return t
}

// Loaded skills are shown again within 5,000 tokens each and 25,000 together, the newest first. In a small window they
// get half of what is free. A policy without the step does so too.
func TestSkillsAreShownAgainWithinTheirBudgets(t *testing.T) {
	t.Parallel()
	v := newTalk(200_000, 1_000).say(recall.User, 100).loads("a", 6_000).loads("b", 9_000).loads("a", 6_000).
		loads("c", 1_000).called("load_skill", 50, true).look(2_000)
	for i := range 6 {
		v.loads(fmt.Sprint("d", i), 6_000)
	}
	after := newTalk(200_000, 1_000).say(recall.User, 100)
	for name, p := range map[string]policy.Policy{"with the step": pressureOf(t, step{"step": "restore_skills"}),
		"without it": pressureOf(t, step{"step": "full"})} {
		got, total := restoredOf(t, p, v, after, policy.Moment{})
		want := "d5 cut, d4 cut, d3 cut, d2 cut, d1 cut, d0 cut, c cut, a cut, b cut"
		if got != want || total > 25_000 || total < 24_000 {
			t.Errorf("%s: got %s of %d tokens, want %s", name, got, total, want)
		}
	}
	small := newTalk(8_192, 1_000).say(recall.User, 1_500)
	if got, total := restoredOf(t, policy.Policy{}, v, small, policy.Moment{}); total > 3_000 || total < 2_000 ||
		got != "d5 cut, d4 cut, d3 cut, d2 cut, d1 cut, d0 cut, c cut, a cut, b cut" {
		t.Errorf("in a small window: %s of %d tokens", got, total)
	}
	none := pressureOf(t, step{"step": "restore_skills", "max_total_tokens": 0})
	if got, _ := restoredOf(t, none, v, after, policy.Moment{}); got != "" {
		t.Errorf("with no budget: %s", got)
	}
	after.loads("d5", 100)
	now := map[string]string{"c": prose.SkillHead("c", "f") + "\n\nnew", "b": v.Messages[4].Content[0].Text}
	if got, _ := restoredOf(t, policy.Policy{}, v, after, policy.Moment{Skills: now}); got != "c current, b cut" {
		t.Errorf("of two skills that are still there: %s", got)
	}
	now["c"] += strings.Repeat("\nnew line", 10_000)
	if _, total := restoredOf(t, policy.Policy{}, v, after, policy.Moment{Skills: now}); total > 10_000 || total < 9_000 {
		t.Errorf("a skill that became long takes %d tokens with another one", total)
	}
}

// restoredOf returns what a policy shows again of v, and its tokens.
func restoredOf(t *testing.T, p policy.Policy, v, after *talk, at policy.Moment) (names string, total int) {
	t.Helper()
	var all []string
	for _, r := range p.Restore(v.View, after.View, at) {
		name := strings.Fields(r.Source)[2]
		switch {
		case r.Named:
			name += "named"
		case r.Cut != nil && r.Cut.Kind == clip.Current:
			name += "current"
		case r.Cut != nil:
			name += "cut"
		}
		all = append(all, strings.ReplaceAll(name, ",", " "))
		if total += r.Tokens; r.Tokens > 5_000 {
			t.Errorf("%s takes %d tokens", r.Source, r.Tokens)
		}
	}
	return strings.Join(all, ", "), total
}

// Skills stay through compactions that follow each other, with their newest text, and no pruning clears them.
func TestSkillsStayThroughCompactions(t *testing.T) {
	t.Parallel()
	v := newTalk(20_000, 1_000).say(recall.User, 100).loads("a", 1_000).loads("long", 4_000)
	for range 20 {
		v.look(200)
	}
	v.say(recall.User, 100)
	p := pressureOf(t, step{"step": "clear_tool_uses", "trigger_tokens": 1, "keep": 1}, step{"step": "full"})
	pruned, edits := p.Prune(v.View, policy.Moment{})
	for _, e := range edits {
		if skill := v.Messages[4].Position; e.Position <= skill && e.Position != v.Messages[1].Position &&
			e.Position != v.Messages[3].Position {
			t.Errorf("a loaded skill is edited: %v", e)
		}
	}
	if len(edits) == 0 {
		t.Fatal("nothing is pruned")
	}
	now := map[string]string{"a": v.Messages[2].Content[0].Text, "long": prose.SkillHead("long", "f") + "\n\nShort now."}
	view := pruned
	for round := range 3 {
		at := policy.Moment{Forced: true, Skills: now}
		planned, err := p.PlanAndRestore(view, at)
		if err != nil {
			t.Fatal(err)
		}
		evicted := planned.Evict(view)
		s, err := summary.Summarize(t.Context(), evicted, plan.Defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		after := planned.View(view, &s)
		if err := plan.CheckNothingLost(view, evicted, after); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		var shown []string
		for _, m := range after.AsShown() {
			if m.Role == recall.Tool && prose.LoadedSkill(m.Content[0].Text) != "" {
				shown = append(shown, m.Content[0].Text[len(m.Content[0].Text)-10:])
			}
		}
		if len(shown) != 2 || shown[1] != "Short now." && shown[1] != "Other now." {
			t.Errorf("round %d shows %q", round, shown)
		}
		now["long"] = prose.SkillHead("long", "f") + "\n\nOther now."
		v.View = after
		v.say(recall.Assistant, 100).look(500).say(recall.User, 100)
		view = v.View
	}
	if !slices.ContainsFunc(view.Edits, func(e clip.Edit) bool { return e.Kind == clip.Current }) {
		t.Error("no text is a current one")
	}
}
