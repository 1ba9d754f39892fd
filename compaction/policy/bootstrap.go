package policy

// Bootstrap bounds what stands in every prompt from the start of a session on: blocks, and the index of memory files.
// Prompts apply its numbers themselves. Open files have limits of their own.
type Bootstrap struct {
	MaxChars      int     `json:"max_chars" min:"64" max:"10000000" doc:"Of one text that are shown."`
	MaxTotalChars int     `json:"max_total_chars" min:"64" max:"10000000" doc:"Of all texts together, in their order."`
	HeadShare     float64 `json:"head_share" min:"0" max:"1" doc:"Of them for the beginning; the end gets the rest."`
}

func (*Bootstrap) describe() Mechanism {
	return Mechanism{Name: "bootstrap", Stage: Enter, Source: "OpenClaw",
		Words: "Bounds the blocks, and the index of memory files, that every prompt shows: the beginning and the end of " +
			"each, with a note on how to read the rest.",
		New: func() Step { return &Bootstrap{MaxChars: 12_000, MaxTotalChars: 60_000, HeadShare: 0.75} }}
}

// Bootstrap returns the policy's step that bounds blocks; nil if there is none.
func (p Policy) Bootstrap() *Bootstrap {
	for _, s := range p.Steps {
		if b, ok := s.(*Bootstrap); ok {
			return b
		}
	}
	return nil
}
