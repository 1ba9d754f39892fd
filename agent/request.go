package agent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loci-memory/loci/recall/chat"
)

// mustCall returns the field tool_choice of a request that makes the model call this tool.
func mustCall(f Format, tool string) any {
	switch f {
	case Anthropic:
		return map[string]string{"type": "tool", "name": tool}
	case Responses:
		return map[string]string{"type": "function", "name": tool}
	}
	return map[string]any{"type": "function", "function": map[string]string{"name": tool}}
}

// format returns the request format of the agent's model.
func (a Agent) format() Format {
	if chat.IsClaude(a.model()) {
		return Anthropic
	}
	return OpenAI
}

// request is a JSON request to a provider, cut into pieces. Parts that stay the same from one prompt to the next give
// the same pieces.
type request struct {
	written bytes.Buffer
	cuts    []int
}

// pieceMessages is how many messages make a piece. A prompt names each of its pieces, and only the last ones change as
// a conversation goes on.
const pieceMessages = 16

// newRequest writes a prompt's request. options are further fields. Parts that change least come first.
func newRequest(p Prompt, options map[string]any) *request {
	r, f, tools, messages := &request{}, p.format, p.tools, p.messages
	r.written.WriteString("{")
	for _, name := range slices.Sorted(maps.Keys(options)) {
		r.written.WriteString(`"` + name + `":` + string(chat.Encode(options[name])) + ",")
	}
	if len(tools) > 0 {
		r.written.WriteString(`"tools":`)
		r.list(tools, len(tools))
		r.written.WriteString(",")
	}
	r.cut()
	switch f {
	case Anthropic:
		r.system(p.system, `"system":[`, `{"type":"text","text":"`, `"}`, "],")
		r.written.WriteString(`"messages":`)
		r.list(messages, pieceMessages)
	case Responses:
		r.system(p.system, `"instructions":"`, "", "", `",`)
		r.written.WriteString(`"input":`)
		r.list(messages, pieceMessages)
	default:
		r.written.WriteString(`"messages":[`)
		r.system(p.system, `{"role":"system","content":"`, "", "", `"}`)
		for i, m := range messages {
			r.written.WriteString(",")
			r.written.Write(m)
			if i%pieceMessages == pieceMessages-1 {
				r.cut()
			}
		}
		r.written.WriteString("]")
	}
	r.written.WriteString("}")
	r.cut()
	return r
}

// system writes the parts of a system prompt, each between before and after, and all of them between begin and end.
func (r *request) system(p systemPrompt, begin, before, after, end string) {
	r.written.WriteString(begin)
	for i, part := range p.parts() {
		if i > 0 && before != "" {
			r.written.WriteString(",")
		}
		text := chat.Encode(part)
		r.written.WriteString(before)
		r.written.Write(text[1 : len(text)-1])
		r.written.WriteString(after)
		r.cut()
	}
	r.written.WriteString(end)
}

// list writes a list, and ends a piece after each perPiece items.
func (r *request) list(items []json.RawMessage, perPiece int) {
	r.written.WriteString("[")
	for i, item := range items {
		if i > 0 {
			r.written.WriteString(",")
		}
		r.written.Write(item)
		if i%perPiece == perPiece-1 {
			r.cut()
		}
	}
	r.written.WriteString("]")
}

// cut ends a piece.
func (r *request) cut() {
	if n := len(r.cuts); n == 0 || r.cuts[n-1] < r.written.Len() {
		r.cuts = append(r.cuts, r.written.Len())
	}
}

// pieces returns the pieces of the request in order.
func (r *request) pieces() [][]byte {
	all := make([][]byte, len(r.cuts))
	from := 0
	for i, to := range r.cuts {
		all[i], from = r.written.Bytes()[from:to], to
	}
	return all
}
