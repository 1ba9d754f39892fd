package policy

import (
	"fmt"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// AgeTTL clears each result a set time after it came.
type AgeTTL struct {
	TTL          Duration `json:"ttl"`
	MinChars     int      `json:"min_chars" min:"0" max:"100000000"`
	ProtectTurns int      `json:"protect_turns" min:"0" max:"1000"`
	When         string   `json:"when" oneof:"turn_start,always"`
}

func (*AgeTTL) describe() Mechanism {
	return Mechanism{Name: "age_ttl", Stage: Prune, Source: "Memory System v2",
		Words: "Shows of each result that is older than some time only which tool ran.",
		Settings: map[string]string{
			"ttl":           "Results that are older are cleared.",
			"min_chars":     "Shorter results stay.",
			"protect_turns": "How many of the newest turns stay as they are. A turn begins with a message of the user.",
			"when": "Whether results are cleared only when a turn begins, so that the prompt's beginning is the same within " +
				"a turn, or before each prompt.",
		},
		New: func() Step {
			return &AgeTTL{TTL: Duration(30 * time.Second), MinChars: 100, ProtectTurns: 1, When: "turn_start"}
		}}
}

// Edits clears old results.
func (a *AgeTTL) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	n := len(v.Messages)
	if n == 0 || a.When == "turn_start" && v.Messages[n-1].Role != recall.User {
		return nil
	}
	protected := turnStart(v, a.ProtectTurns)
	for r := range results(v) {
		if r.message >= protected || !r.hasText() || len(r.p.Text) < a.MinChars || r.chars() < a.MinChars {
			continue
		}
		if at.Now.Sub(r.m.CreatedAt) > time.Duration(a.TTL) {
			edits = append(edits, r.stub("age_ttl", fmt.Sprintf("result of %s cleared", r.toolName())))
		}
	}
	return edits
}

// turnStart returns the index of the user's message that begins the newest turns.
func turnStart(v clip.View, turns int) int {
	start := len(v.Messages)
	for i := len(v.Messages) - 1; i >= 0 && turns > 0; i-- {
		if v.Messages[i].Role == recall.User {
			turns--
			start = i
		}
	}
	if turns > 0 {
		return 0
	}
	return start
}
