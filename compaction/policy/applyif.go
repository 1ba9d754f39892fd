package policy

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
)

// ApplyIf delays changes by the stages normalize and prune to a prompt in the provider's cache, until they save more
// than they cost. Text that the provider has not been sent yet is always changed.
type ApplyIf struct {
	When          string   `json:"when" oneof:"always,only_if_cold,under_pressure,break_even"`
	CacheTTL      Duration `json:"cache_ttl"`
	PressureShare float64  `json:"pressure_share" min:"0" max:"1"`
	TurnsLeft     int      `json:"turns_left" min:"0" max:"1000000"`
	Read          float64  `json:"read_multiplier" min:"0" max:"10"`
	Write         float64  `json:"write_multiplier" min:"0" max:"10"`
}

func (*ApplyIf) describe() Mechanism {
	return Mechanism{Name: "apply_if", Stage: Prune, Source: "Loci, for clear_at_least and timers of caches",
		Words: "Holds changes of a cached prompt back until they are worth what they cost.",
		Settings: map[string]string{
			"when": "Changes are made always; only_if_cold: when the cache has expired; under_pressure: not even then; " +
				"break_even: also when they save more over turns_left prompts than they cost. When the window is nearly " +
				"full, they are always made.",
			"cache_ttl":        "How long a provider keeps a prompt in its cache.",
			"pressure_share":   "From this share of the window on, it is nearly full.",
			"turns_left":       "How many more prompts are expected.",
			"read_multiplier":  "What a token read from the cache costs, in prices of a token of the input.",
			"write_multiplier": "What a token written to the cache costs, likewise.",
		},
		New: func() Step {
			return &ApplyIf{When: "always", CacheTTL: Duration(5 * time.Minute), PressureShare: 0.95, TurnsLeft: 10, Read: 0.1,
				Write: 1.25}
		}}
}

// Opens reports whether a change of a view is made now.
func (a *ApplyIf) Opens(change Change, v clip.View, at Moment) bool {
	full := v.Window > 0 && float64(at.tokens(v)) > a.PressureShare*float64(v.Window)
	cold := at.Touched.IsZero() || at.Idle() >= time.Duration(a.CacheTTL)
	if a.When == "always" || change.First == 0 || full || cold && a.When != "under_pressure" {
		return true
	}
	prices := CachePrices{Input: 1, Read: a.Read, Write: a.Write}
	return a.When == "break_even" && prices.BreakEven(change) <= float64(a.TurnsLeft)
}
