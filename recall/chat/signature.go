package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// extraContent is what Gemini attaches to a call in OpenAI's format. A call that comes back without its signature is
// refused.
type extraContent struct {
	Google struct {
		Signature string `json:"thought_signature"`
	} `json:"google"`
}

// ThoughtSignature returns the signature in the field extra_content of a call; empty if it has none.
func ThoughtSignature(raw json.RawMessage) string {
	var e extraContent
	_ = json.Unmarshal(raw, &e) // another server may have anything there
	return e.Google.Signature
}

// extraOf returns the field extra_content of a call; nil without a signature.
func extraOf(signature string) *extraContent {
	if signature == "" {
		return nil
	}
	e := extraContent{}
	e.Google.Signature = signature
	return &e
}

// ReadableBy returns a view whose calls have the signatures only that a model wrote or that another one of its family
// reads, and whose parts have the form only in which the model itself returned them: servers refuse what they do not
// know. An empty model is unknown.
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
			if p.Kind = ""; p.Type == recall.Reasoning {
				p.Extra = ""
			}
		}
	}
	return all
}

// isOfOneModel reports whether a part has what other models may not read.
func isOfOneModel(p recall.Part) bool {
	return p.Type == recall.ToolCall && p.Signature != "" || p.Kind != "" || p.Type == recall.Reasoning && p.Extra != ""
}

// isSame reports whether two names or handles are those of one model. Unknown ones may be.
func isSame(reader, writer string) bool {
	name := func(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }
	return reader == "" || writer == "" || name(reader) == name(writer)
}

// readsSignatures reports whether a model reads the signatures of calls that another one wrote.
func readsSignatures(reader, writer string) bool {
	isGemini := func(model string) bool { return strings.Contains(strings.ToLower(model), "gemini") }
	return isSame(reader, writer) || isGemini(reader) && isGemini(writer)
}
