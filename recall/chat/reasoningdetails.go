package chat

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// ReasoningDetails joins pieces of the field reasoning_details. OpenRouter streams a model's reasoning and its
// signatures in this field, and a provider accepts the reasoning back only whole.
type ReasoningDetails struct {
	blocks []detailsBlock
}

type detailsBlock map[string]json.RawMessage

// Add adds the list of blocks from one event. A block continues the last block if both have the same type and index:
// its texts are appended, and its other fields, such as a signature at the end, replace earlier ones. Anything but a
// list of objects is ignored.
func (d *ReasoningDetails) Add(raw json.RawMessage) {
	var blocks []detailsBlock
	if json.Unmarshal(raw, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		if b == nil {
			continue
		}
		if n := len(d.blocks); n > 0 && d.blocks[n-1].goesOn(b) {
			d.blocks[n-1].join(b)
		} else {
			d.blocks = append(d.blocks, b)
		}
	}
}

// goesOn reports whether next continues block b. Encrypted blocks come whole.
func (b detailsBlock) goesOn(next detailsBlock) bool {
	is := b.text("type")
	return (is == "reasoning.text" || is == "reasoning.summary") && next.text("type") == is &&
		string(b["index"]) == string(next["index"])
}

func (b detailsBlock) join(next detailsBlock) {
	for name, value := range next {
		switch {
		case string(value) == "null":
		case name == "text" || name == "summary":
			b[name] = Encode(b.text(name) + next.text(name))
		default:
			b[name] = value
		}
	}
}

func (b detailsBlock) text(name string) (text string) {
	_ = json.Unmarshal(b[name], &text) // anything but a text counts as empty
	return text
}

// Extra returns the joined blocks as Extra of a reasoning; empty if there are no blocks.
func (d *ReasoningDetails) Extra() string {
	if len(d.blocks) == 0 {
		return ""
	}
	return string(Encode(map[string]any{recall.ChatAPI: map[string]any{"reasoning_details": d.blocks}}))
}
