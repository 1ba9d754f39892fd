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
		r.written.WriteString(`"tools":[`)
		for i, tool := range tools {
			if i > 0 {
				r.written.WriteString(",")
			}
			if r.written.Write(tool); i == len(tools)-1 {
				r.mark(p.marks.Tools)
			}
		}
		r.written.WriteString("],")
	}
	r.cut()
	switch f {
	case Anthropic:
		r.system(p.system, `"system":[{"type":"text","text":"`, `"}`)
		r.mark(p.marks.System)
		r.written.WriteString("],")
		r.written.WriteString(`"messages":[`)
	case Responses:
		r.system(p.system, `"instructions":"`, `",`)
		r.written.WriteString(`"input":[`)
	default:
		r.written.WriteString(`"messages":[`)
		if r.system(p.system, `{"role":"system","content":"`, `"}`); len(messages) > 0 {
			r.written.WriteString(",")
		}
	}
	r.messages(messages, p.system)
	r.written.WriteString("]}")
	r.cut()
	return r
}

// system writes the parts of a system prompt between begin and end.
func (r *request) system(p systemPrompt, begin, end string) {
	r.written.WriteString(begin)
	for _, part := range p.parts() {
		r.written.Write(escaped(part))
		r.cut()
	}
	r.written.WriteString(end)
}

// mark adds a mark to the object that was written last.
func (r *request) mark(m *chat.CacheControl) {
	if m != nil {
		r.written.Truncate(r.written.Len() - len("}"))
		r.written.WriteString(`,"cache_control":` + string(chat.Encode(m)) + "}")
	}
}

// escaped returns a text as it stands between quotes in JSON.
func escaped(text string) []byte {
	raw := chat.Encode(text)
	return raw[1 : len(raw)-1]
}

// messages writes a prompt's messages. The one with the state is cut around the views of files, which are long and
// change less often than the rest of it.
func (r *request) messages(all []json.RawMessage, p systemPrompt) {
	files := escaped(p.directories)
	for i, m := range all {
		if i > 0 {
			r.written.WriteString(",")
		}
		if before, after, found := bytes.Cut(m, files); found && len(files) > 0 && i >= len(all)-2 {
			r.cut()
			r.written.Write(before)
			r.cut()
			r.written.Write(files)
			r.cut()
			r.written.Write(after)
			continue
		}
		if r.written.Write(m); i%pieceMessages == pieceMessages-1 || i == len(all)-2 {
			r.cut()
		}
	}
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
