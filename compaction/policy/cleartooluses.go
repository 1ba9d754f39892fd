package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// ClearToolUses clears old results when a prompt has become long. On request it also clears the arguments of their
// calls.
type ClearToolUses struct {
	TriggerTokens int      `json:"trigger_tokens" min:"0" max:"100000000"`
	TriggerUses   int      `json:"trigger_uses" min:"0" max:"1000000"`
	Keep          int      `json:"keep" min:"0" max:"100000"`
	ClearAtLeast  int      `json:"clear_at_least_tokens" min:"0" max:"100000000"`
	Except        []string `json:"exclude_tools"`
	Inputs        bool     `json:"clear_tool_inputs"`
	InputsOf      []string `json:"clear_tool_inputs_of"`
	ByProvider    bool     `json:"by_provider"`
}

func (*ClearToolUses) describe() Mechanism {
	return Mechanism{Name: "clear_tool_uses", Stage: Prune, Source: "Anthropic, clear_tool_uses_20250919",
		Words: "Clears all but the newest results when the prompt has become long.",
		Settings: map[string]string{
			"trigger_tokens": "Results are cleared when the prompt has more tokens. 0: this does not trigger.",
			"trigger_uses":   "Results are cleared when more are shown. 0: this does not trigger.",
			"keep":           "How many of the newest results stay.",
			"clear_at_least_tokens": "If fewer tokens can be cleared, none are: a change must be worth the provider's cache " +
				"that it costs.",
			"exclude_tools":        "Tools whose results stay, with * for any characters.",
			"clear_tool_inputs":    "Whether the arguments of the calls are cleared, too.",
			"clear_tool_inputs_of": "Tools whose arguments are cleared even if clear_tool_inputs is false.",
			"by_provider":          byProviderWords + " With both triggers, the provider gets that of tokens.",
		},
		New: func() Step {
			return &ClearToolUses{TriggerTokens: 100_000, Keep: 3, Except: []string{"memory*", "working_memory*"}}
		}}
}

// Edits clears results, the oldest first.
func (c *ClearToolUses) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	if c.ByProvider && at.Anthropic {
		return nil
	}
	var shown, all []result
	for r := range results(v) {
		if r.call != nil {
			all = append(all, r)
		}
		if r.call != nil && r.hasText() {
			shown = append(shown, r)
		}
	}
	many := c.TriggerUses > 0 && len(shown) > c.TriggerUses
	if !many && (c.TriggerTokens == 0 || at.tokens(v) <= c.TriggerTokens) {
		return nil
	}
	clearable := 0
	for _, r := range all[:newest(len(all), c.Keep)] {
		if !r.hasText() || !selects(nil, c.Except, r.tool()) {
			continue
		}
		stub := r.stub("clear_tool_uses", cleared)
		if saves := v.Saves(*r.m, r.edit, stub); saves > 0 {
			clearable += saves
			edits = append(edits, stub)
		}
		if c.Inputs || matchesAny(c.InputsOf, r.call.Name) {
			m := v.Messages[r.caller]
			e := clip.Edit{Position: m.Position, Part: r.input, Kind: clip.Stub, Step: "clear_tool_uses"}
			if saves := v.Saves(m, nil, e); saves > 0 {
				clearable += saves
				edits = append(edits, e)
			}
		}
	}
	if clearable < c.ClearAtLeast {
		return nil
	}
	return edits
}

// edit implements byProvider.
func (c *ClearToolUses) edit(tools []string, _ int) map[string]any {
	if !c.ByProvider || c.TriggerTokens == 0 && c.TriggerUses == 0 {
		return nil
	}
	fields := map[string]any{"trigger": ofUses(c.TriggerUses), "keep": ofUses(c.Keep), "clear_tool_inputs": c.Inputs}
	if c.TriggerTokens > 0 {
		fields["trigger"] = ofTokens(c.TriggerTokens)
	}
	if c.ClearAtLeast > 0 {
		fields["clear_at_least"] = ofTokens(c.ClearAtLeast)
	}
	inputs := named(tools, func(tool string) bool { return matchesAny(c.InputsOf, tool) })
	if !c.Inputs && len(inputs) > 0 {
		fields["clear_tool_inputs"] = inputs
	}
	return clearing(fields, tools, func(tool string) bool { return matchesAny(c.Except, tool) })
}
