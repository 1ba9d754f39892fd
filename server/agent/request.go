package agent

import (
	"bytes"
	"encoding/json"

	"github.com/loci-memory/loci/recall/chat"
)

// Format is the form of a request: which provider's API takes it.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"    // chat completions
	Anthropic Format = "anthropic" // messages
)

// format is the form in which an agent's model is asked, where nobody says which.
func (a Agent) format() Format {
	if chat.IsClaude(a.model()) {
		return Anthropic
	}
	return OpenAI
}

// request is a request to a provider in JSON, and where its pieces end: what stays the same from one prompt to the next is the same pieces.
type request struct {
	written bytes.Buffer
	cuts    []int
}

// messagesAPiece is how many messages make a piece: a prompt names each of its pieces, and only the last ones change as a conversation goes
// on.
const messagesAPiece = 16

// newRequest writes a request; its stable parts come first. Tools are their definitions as the format has them.
func newRequest(f Format, model string, tools []json.RawMessage, p prompt, messages []json.RawMessage) *request {
	r := &request{}
	r.written.WriteString("{")
	if model != "" {
		r.written.WriteString(`"model":` + string(chat.Encode(model)) + ",")
	}
	if len(tools) > 0 {
		r.written.WriteString(`"tools":`)
		r.list(tools, len(tools))
		r.written.WriteString(",")
	}
	r.cut()
	if f == Anthropic {
		r.system(p, `"system":[`, `{"type":"text","text":"`, `"}`, "],")
		r.written.WriteString(`"messages":`)
		r.list(messages, messagesAPiece)
	} else {
		r.written.WriteString(`"messages":[`)
		r.system(p, `{"role":"system","content":"`, "", "", `"}`)
		for i, m := range messages {
			r.written.WriteString(",")
			r.written.Write(m)
			if i%messagesAPiece == messagesAPiece-1 {
				r.cut()
			}
		}
		r.written.WriteString("]")
	}
	r.written.WriteString("}")
	r.cut()
	return r
}

// system writes the parts of a system prompt, each between before and after, all between begin and end.
func (r *request) system(p prompt, begin, before, after, end string) {
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

// list writes a list of items, so many to a piece.
func (r *request) list(items []json.RawMessage, aPiece int) {
	r.written.WriteString("[")
	for i, item := range items {
		if i > 0 {
			r.written.WriteString(",")
		}
		r.written.Write(item)
		if i%aPiece == aPiece-1 {
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

// pieces are what the request is made of, in order.
func (r *request) pieces() [][]byte {
	all := make([][]byte, len(r.cuts))
	from := 0
	for i, to := range r.cuts {
		all[i], from = r.written.Bytes()[from:to], to
	}
	return all
}
