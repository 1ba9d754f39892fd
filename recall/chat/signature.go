package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// extraContent is what Gemini attaches to a call in OpenAI's format. Gemini refuses such a call if it comes back
// without its signature.
type extraContent struct {
	Google struct {
		Signature string `json:"thought_signature"`
	} `json:"google"`
}

// ThoughtSignature returns the signature in a call's field extra_content; empty if there is none.
func ThoughtSignature(raw json.RawMessage) string {
	var e extraContent
	_ = json.Unmarshal(raw, &e) // other servers may put anything there
	return e.Google.Signature
}

// extraOf returns a call's field extra_content; nil without a signature.
func extraOf(signature string) *extraContent {
	if signature == "" {
		return nil
	}
	e := extraContent{}
	e.Google.Signature = signature
	return &e
}

// ReadableBy returns a view that the model's server accepts. Servers refuse what they do not know, so calls lose
// signatures that neither this model nor one of its family wrote, and parts lose the provider's form and Extra if
// another model returned them. An empty model is unknown.
func ReadableBy(model string, view []recall.Message) []recall.Message {
	all := slices.Clone(view)
	for i, m := range all {
		if m.Model == nil || isSame(model, *m.Model) || !slices.ContainsFunc(m.Content, isOfOneModel) {
			continue
		}
		all[i].Content = slices.Clone(m.Content)
		for j := range all[i].Content {
			p := &all[i].Content[j]
			if p.Type == recall.ToolCall && !readsSignatures(model, *m.Model) {
				p.Signature = ""
			}
			if p.Kind != recall.InnerThought {
				p.Kind = ""
			}
			if p.Type == recall.Reasoning {
				p.Extra = ""
			}
		}
	}
	return all
}

// isOfOneModel reports whether a part contains something that other models may not read.
func isOfOneModel(p recall.Part) bool {
	return p.Type == recall.ToolCall && p.Signature != "" || p.Kind != "" || p.Type == recall.Reasoning && p.Extra != ""
}

// isSame reports whether two names or handles may belong to the same model. An empty one may be any model.
func isSame(reader, writer string) bool {
	name := func(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }
	return reader == "" || writer == "" || name(reader) == name(writer)
}

// readsSignatures reports whether the reader accepts signatures of calls that the writer made.
func readsSignatures(reader, writer string) bool {
	isGemini := func(model string) bool { return strings.Contains(strings.ToLower(model), "gemini") }
	return isSame(reader, writer) || isGemini(reader) && isGemini(writer)
}
