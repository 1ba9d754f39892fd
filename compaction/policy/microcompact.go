package policy

import (
	"slices"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Microcompact clears old results by a rule, without a model.
type Microcompact struct {
	Gap          Duration `json:"gap"`
	Keep         int      `json:"keep" min:"0" max:"100000"`
	TriggerCount int      `json:"trigger_count" min:"0" max:"100000"`
	TriggerShare float64  `json:"trigger_share" min:"0" max:"1"`
	ByProvider   bool     `json:"by_provider"`
	Tools        []string `json:"tools"`
}

func (*Microcompact) describe() Mechanism {
	return Mechanism{Name: "microcompact", Stage: Prune, Source: "Claude Code",
		Words: "Clears all but the newest results after a pause, or when there are many.",
		Settings: map[string]string{
			"gap": "How long the assistant said nothing until the provider's cache counts as cold, and all but the newest " +
				"results are cleared. 0s: never.",
			"keep": "How many of the newest results stay.",
			"trigger_count": "All but the newest results are also cleared when more than this many are shown, and " +
				"trigger_share of the window is used. 0: never.",
			"trigger_share": "While the provider's cache is warm, results are cleared only above this share of the window, " +
				"because the prompt behind them is then written to the cache again. 1: a compaction comes first.",
			"by_provider": byProviderWords + " Only a pause clears them here.",
			"tools":       "Tools whose results are counted and cleared, with * for any characters. Empty: all.",
		},
		New: func() Step {
			return &Microcompact{Gap: Duration(time.Hour), Keep: 5, TriggerCount: 12, TriggerShare: 0.75,
				Tools: []string{"read*", "bash*", "shell*", "run_code*", "grep*", "glob*", "*search*", "*fetch*", "edit*", "write*",
					"open_files"}}
		}}
}

// Edits clears results.
func (m *Microcompact) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	var shown []result
	for r := range results(v) {
		if r.hasText() && selects(m.Tools, nil, r.tool()) {
			shown = append(shown, r)
		}
	}
	here := !m.ByProvider || !at.Anthropic
	crowded := here && m.TriggerCount > 0 && len(shown) > m.TriggerCount &&
		(v.Window <= 0 || float64(at.tokens(v)) > m.TriggerShare*float64(v.Window))
	if !crowded && !m.cold(v, at) {
		return nil
	}
	for _, r := range shown[:newest(len(shown), m.Keep)] {
		edits = append(edits, r.stub("microcompact", cleared))
	}
	return edits
}

// providerShare is the largest share of a window at which a provider clears, before Loci compacts.
const providerShare = 0.75

// edit implements byProvider.
func (m *Microcompact) edit(tools []string, window int) map[string]any {
	if !m.ByProvider || m.TriggerCount == 0 {
		return nil
	}
	trigger := ofUses(m.TriggerCount)
	if share := min(m.TriggerShare, providerShare); share > 0 && window > 0 { // the API has one trigger
		trigger = ofTokens(int(share * float64(window)))
	}
	return clearing(map[string]any{"trigger": trigger, "keep": ofUses(m.Keep)}, tools,
		func(tool string) bool { return !selects(m.Tools, nil, tool) })
}

// cold reports whether the assistant has said nothing for longer than the gap.
func (m *Microcompact) cold(v clip.View, at Moment) bool {
	if m.Gap <= 0 {
		return false
	}
	for _, message := range slices.Backward(v.Messages) {
		if message.Role == recall.Assistant {
			return !message.CreatedAt.IsZero() && at.Now.Sub(message.CreatedAt) > time.Duration(m.Gap)
		}
	}
	return false
}
