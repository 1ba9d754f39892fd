package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// Snip shows the beginning and the end of each tool result longer than MaxChars.
type Snip struct {
	MaxChars  int     `json:"max_chars" min:"100" max:"10000000"`
	HeadShare float64 `json:"head_share" min:"0" max:"1"`
	TailShare float64 `json:"tail_share" min:"0" max:"1"`
}

func (*Snip) describe() Mechanism {
	return Mechanism{Name: "snip", Stage: Enter, Source: "four layers, layer 1",
		Words: "Shows the beginning and the end of long results of tools.",
		Settings: map[string]string{
			"max_chars":  "Results up to this length are shown whole.",
			"head_share": "What is shown of the beginning, as a share of max_chars.",
			"tail_share": "What is shown of the end, as a share of max_chars.",
		},
		New: func() Step { return &Snip{MaxChars: 10_000, HeadShare: 0.3, TailShare: 0.3} }}
}

// Edits clips results.
func (s *Snip) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	head, tail := int(s.HeadShare*float64(s.MaxChars)), int(s.TailShare*float64(s.MaxChars))
	for r := range results(v) {
		if r.edit == nil && r.longerThan(s.MaxChars) && head+tail < r.chars() {
			edits = append(edits, r.headAndTail("snip", head, tail))
		}
	}
	return edits
}
