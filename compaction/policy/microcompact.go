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
	Tools        []string `json:"tools"`
}

func (*Microcompact) describe() Mechanism {
	return Mechanism{Name: "microcompact", Stage: Prune, Source: "Claude Code",
		Words: "Clears all but the newest results after a pause, or when there are many.",
		Settings: map[string]string{
			"gap": "How long the assistant said nothing until the provider's cache counts as cold, and all but the newest " +
				"results are cleared. 0s: never.",
			"keep":          "How many of the newest results stay.",
			"trigger_count": "All but the newest results are also cleared when more than this many are shown. 0: never.",
			"tools":         "Tools whose results are counted and cleared, with * for any characters. Empty: all.",
		},
		New: func() Step {
			return &Microcompact{Gap: Duration(time.Hour), Keep: 5, TriggerCount: 12,
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
	crowded := m.TriggerCount > 0 && len(shown) > m.TriggerCount
	if !crowded && !m.cold(v, at) {
		return nil
	}
	for _, r := range shown[:newest(len(shown), m.Keep)] {
		edits = append(edits, r.stub("microcompact", cleared))
	}
	return edits
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
