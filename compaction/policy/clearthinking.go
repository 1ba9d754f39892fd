package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// ClearThinking removes the assistant's thoughts from old turns.
type ClearThinking struct {
	KeepTurns int `json:"keep_turns" min:"1" max:"100000"`
}

func (*ClearThinking) describe() Mechanism {
	return Mechanism{Name: "clear_thinking", Stage: Prune, Source: "Anthropic, clear_thinking_20251015",
		Words: "Removes the assistant's thoughts of old turns whole. Those of calls that are not answered stay.",
		Settings: map[string]string{
			"keep_turns": "How many of the newest turns with thoughts keep them. A turn is what the assistant does between " +
				"two messages of the user.",
		},
		New: func() Step { return &ClearThinking{KeepTurns: 1} }}
}

// Edits removes thoughts.
func (c *ClearThinking) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	turns, counted := 0, false // number of turns with thoughts, from the newest on; whether the current turn is counted
	inLoop := !answered(v)
	for i, m := range slices.Backward(v.Messages) {
		if m.Role == recall.User {
			counted, inLoop = false, inLoop && i == len(v.Messages)-1
			continue
		}
		for n, p := range m.Content {
			if m.Role != recall.Assistant || !isThought(p) {
				continue
			}
			if !counted {
				turns, counted = turns+1, true
			}
			if turns > c.KeepTurns && !inLoop {
				edits = append(edits, clip.Edit{Position: m.Position, Part: n, Kind: clip.Removed,
					Step: "clear_thinking"})
			}
		}
	}
	return edits
}

// answered reports whether the view ends with an answer of the assistant without tool calls.
func answered(v clip.View) bool {
	n := len(v.Messages)
	if n == 0 || v.Messages[n-1].Role != recall.Assistant {
		return false
	}
	for _, p := range v.Messages[n-1].Content {
		if p.Type == recall.ToolCall {
			return false
		}
	}
	return true
}

func isThought(p recall.Part) bool {
	switch p.Type {
	case recall.Reasoning, recall.RedactedReasoning, recall.OmittedReasoning, recall.SummarizedReasoning:
		return true
	}
	return false
}
