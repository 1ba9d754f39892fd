package policy

import (
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Dedup shows equal results only once.
type Dedup struct {
	MinTokens     int      `json:"min_tokens" min:"1" max:"1000000"`
	Keep          string   `json:"keep" oneof:"newest,oldest"`
	Supersede     bool     `json:"supersede"`
	ProtectNewest int      `json:"protect_newest" min:"0" max:"100000"`
	Tools         []string `json:"tools"`
}

func (*Dedup) describe() Mechanism {
	return Mechanism{Name: "dedup", Stage: Normalize, Source: "deck, lever 4",
		Words: "Shows results with the same text once, and leads to that copy from the others.",
		Settings: map[string]string{
			"min_tokens": "Shorter results are shown as often as they come.",
			"keep": "Which copy is shown. Newest changes all that the model was sent since the older; oldest only " +
				"the newest copy, once it is answered.",
			"supersede":      "Whether a call that is repeated with another result replaces the older result by a line.",
			"protect_newest": "How many of the newest results stay as they are.",
			"tools":          "Tools whose results are shown once, with * for any characters. Empty: all.",
		},
		New: func() Step { return &Dedup{MinTokens: 64, Keep: "newest"} }}
}

// Edits compares results by their texts, not by their calls: a file that has changed is shown twice.
func (d *Dedup) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	var all []result
	for r := range results(v) {
		if !r.failed() && len(r.p.Images) == 0 && selects(d.Tools, nil, r.tool()) {
			all = append(all, r)
		}
	}
	last := -1 // position of the newest message with a result that may change
	if n := newest(len(all), d.ProtectNewest); n > 0 {
		last = all[n-1].m.Position
	}
	edits = d.superseded(all, last)
	if d.Keep == "newest" {
		all = backward(all)
	}
	return clip.MergeEdits(edits, d.pointers(v, all, last))
}

// pointers returns edits that replace results by pointers to the first of their copies; that copy stays shown.
func (d *Dedup) pointers(v clip.View, all []result, last int) (edits []clip.Edit) {
	first := make(map[string]result, len(all))
	for _, r := range all {
		if !r.hasText() && !isPointer(*r.edit) {
			continue
		}
		text := sameText(r.p)
		shown, ok := first[text]
		switch {
		case !ok && r.hasText() && r.tokens(v) >= d.MinTokens:
			first[text] = r
		case ok && r.m.Position <= last && shown.m.Seq != r.m.Seq:
			e := r.clip("dedup", 0)
			e.Kind, e.CopySeq = clip.Pointer, shown.m.Seq
			edits = append(edits, e)
		}
	}
	return edits
}

// superseded returns lines for results of calls that were repeated and then had another result.
func (d *Dedup) superseded(all []result, last int) (edits []clip.Edit) {
	if !d.Supersede {
		return nil
	}
	newer := map[string]result{}
	for _, r := range backward(all) {
		if r.call == nil {
			continue
		}
		call := r.call.Name + "\x00" + canonical(r.call.Input)
		if by, ok := newer[call]; ok && r.m.Position <= last && sameText(by.p) != sameText(r.p) {
			edits = append(edits, r.line("dedup", supersededBy(by)))
		} else if !ok {
			newer[call] = r
		}
	}
	return edits
}

// sameText returns a key that is equal for results with the same text: the text with plain line ends, or the hash of a
// text that is stored outside the log.
func sameText(p *recall.Part) string {
	if p.Clip != nil {
		return p.Clip.SHA256
	}
	text := p.Text
	if strings.Contains(text, "\r\n") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return strings.TrimRight(text, "\n")
}
