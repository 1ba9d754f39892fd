package policy

import (
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/compaction/clip"
)

// IdempotentCalls shows only the newest result of a repeated call that only reads a state.
type IdempotentCalls struct {
	Tools []string `json:"tools"`
	Key   []string `json:"key"`
}

func (*IdempotentCalls) describe() Mechanism {
	return Mechanism{Name: "idempotent_calls", Stage: Normalize, Source: "Alyx",
		Words: "Of calls that show a state, shows the newest result only, also if it differs from the older ones.",
		Settings: map[string]string{
			"tools": "Tools whose newest result replaces the older ones, with * for any characters. Empty: none.",
			"key":   "The arguments that say what is shown. Empty: all arguments.",
		},
		New: func() Step { return &IdempotentCalls{} }}
}

// Edits replaces older results by a line.
func (c *IdempotentCalls) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	if len(c.Tools) == 0 {
		return nil
	}
	var all []result
	for r := range results(v) {
		if r.call != nil && !r.failed() && matchesAny(c.Tools, r.call.Name) {
			all = append(all, r)
		}
	}
	newest := map[string]result{}
	for _, r := range backward(all) {
		key := r.call.Name + "\x00" + keyOf(r.call.Input, c.Key)
		if by, ok := newest[key]; ok {
			edits = append(edits, r.line("idempotent_calls", supersededBy(by)))
		} else {
			newest[key] = r
		}
	}
	return edits
}

// supersededBy returns a line that says where a newer result of the same call is.
func supersededBy(by result) string { return fmt.Sprintf("superseded: see seq %d", by.m.Seq) }

// keyOf returns the named fields of a call's arguments in one spelling, or all fields if none are named.
func keyOf(input string, fields []string) string {
	var arguments map[string]any
	if len(fields) == 0 || json.Unmarshal([]byte(input), &arguments) != nil {
		return canonical(input)
	}
	values := make([]any, len(fields))
	for i, f := range fields {
		values[i] = arguments[f]
	}
	return canonicalOf(values, input)
}

// canonical returns JSON with sorted fields and without spaces. It returns any other text unchanged.
func canonical(input string) string {
	var of any
	if json.Unmarshal([]byte(input), &of) != nil {
		return input
	}
	return canonicalOf(of, input)
}

func canonicalOf(of any, input string) string {
	raw, err := json.Marshal(of)
	if err != nil {
		return input
	}
	return string(raw)
}
