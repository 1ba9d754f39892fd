package chat

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// ReasoningDetails joins the pieces of the field reasoning_details, in which OpenRouter streams a model's reasoning
// with its signatures. A provider takes it back only whole.
type ReasoningDetails struct {
	blocks []detailsBlock
}

type detailsBlock map[string]json.RawMessage

// Add adds the list of an event. A block goes on with the last one of its type and index; its texts are joined, and
// its other fields, such as the signature at the end, replace those before them. What is no list of objects is ignored.
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

// goesOn reports whether a block is a piece of the one before it. Encrypted blocks come whole.
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
	_ = json.Unmarshal(b[name], &text) // what is no text is shown as none
	return text
}

// Extra returns the joined blocks as the Extra of a reasoning; empty without blocks.
func (d *ReasoningDetails) Extra() string {
	if len(d.blocks) == 0 {
		return ""
	}
	return string(Encode(map[string]any{recall.ChatAPI: map[string]any{"reasoning_details": d.blocks}}))
}
