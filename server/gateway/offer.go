package gateway

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// notOffered are tools of agents that mean nothing to a program with a loop of its own.
var notOffered = []string{agent.SendMessage, agent.MemoryFinishEdits, tool.StartSubagent}

// caller is the request's agent as the caller of tools in a conversation.
func (x *exchange) caller(c recall.Conversation) tool.Caller {
	caller := tool.CallerIn(x.place.org, x.place.agent, c)
	caller.Unprompted = true
	return caller
}

// offers returns the agent's tools that are offered to the model of the request, besides the client's own: those that
// the agent's settings name. A request that lets the model call none, one certain tool or only those of an old form, or
// that asks for several answers, gets none; nor does one whose conversation the provider keeps.
func (x *exchange) offers() (all []agent.Definition) {
	settings := x.place.agent.Settings.Gateway
	if x.away || x.mode == agent.GatewayObserve || settings == nil || len(settings.Tools) == 0 || !x.body.hasMessages() ||
		x.named().appends || x.body.field("functions") != nil || !x.mayChoose() {
		return nil
	}
	var n int
	if _ = json.Unmarshal(x.body.field("n"), &n); n > 1 { // anything but a number means one
		return nil
	}
	clients := x.clientTools()
	for _, t := range x.Tools.OfCaller(x.caller(recall.Conversation{}), true) {
		if slices.Contains(settings.Tools, t.Name) && !t.ByClient && !slices.Contains(notOffered, t.Name) &&
			!clients[t.Name] && rest.MayRunTools(rest.Caller(x.Request.Context()), x.place.agent.ID) {
			all = append(all, agent.Definition{Name: t.Name, Schema: t.Schema})
		}
	}
	return all
}

// mayChoose reports whether the model may call tools of its choice.
func (x *exchange) mayChoose() bool {
	raw := x.body.field("tool_choice")
	if raw == nil {
		return true
	}
	var name string
	var object struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &name) != nil {
		_ = json.Unmarshal(raw, &object) // another form forces something
		name = object.Type
	}
	return slices.Contains([]string{"auto", "required", "any"}, name)
}

// clientTools returns the names of the tools that the request brings.
func (x *exchange) clientTools() map[string]bool {
	names := map[string]bool{}
	var tools []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	_ = json.Unmarshal(x.body.field("tools"), &tools) // the provider refuses another form
	for _, t := range tools {
		names[t.Name], names[t.Function.Name] = true, true
	}
	return names
}

// withTools adds the offered tools behind the client's.
func (b *body) withTools(tools []json.RawMessage) {
	s, has := b.fields["tools"]
	if raw := b.field("tools"); !has || len(raw) == 0 || raw[0] != '[' {
		if has {
			b.replace("tools", tools)
		} else {
			b.addField("tools", chat.Encode(tools))
		}
		return
	}
	list := chat.Encode(tools)
	more := list[1 : len(list)-1]
	if len(itemsOf(b.of(s), 0)) > 0 {
		more = append(json.RawMessage{','}, more...)
	}
	b.insert(s.to-1, more)
}

// with returns a copy of the request to which something can be added.
func (b *body) with() *body {
	more := *b
	more.edits = slices.Clone(b.edits)
	return &more
}

// hasMessages reports whether the request has messages, or an input that is a text.
func (b *body) hasMessages() bool {
	raw := b.field(b.list)
	return len(b.items) > 0 || len(raw) > 0 && raw[0] == '"'
}

// addItems adds messages behind all others. An input that is a text becomes a message.
func (b *body) addItems(items []json.RawMessage) {
	if raw := b.field(b.list); len(raw) > 0 && raw[0] == '"' {
		s := b.fields[b.list]
		b.insert(s.from, []byte(`[{"role":"user","content":`))
		b.insert(s.to, append(append([]byte("},"), bytes.Join(rawBytes(items), []byte{','})...), ']'))
		return
	}
	if len(items) == 0 {
		return
	}
	var more []byte
	for _, item := range items {
		more = append(append(more, ','), item...)
	}
	b.insert(b.items[len(b.items)-1].to, more)
}

func rawBytes(items []json.RawMessage) (all [][]byte) {
	for _, item := range items {
		all = append(all, item)
	}
	return all
}
