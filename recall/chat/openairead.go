package chat

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// chatRoles maps roles of OpenAI's chat to roles of the log. function is the old name of tool.
var chatRoles = map[string]recall.Role{
	"system": recall.System, "developer": recall.System, "user": recall.User, "assistant": recall.Assistant,
	"tool": recall.Tool, "function": recall.Tool,
}

// Read reads a message of OpenAI's chat completions, OpenAI's Responses API or Anthropic's messages API, or one that
// Letta is asked to create; these differ only in their parts. Tool results in a message become a draft of their own,
// before the draft with the rest.
func Read(m Object) []recall.Draft {
	named := m.OneOf("role", "system", "developer", "user", "assistant", "tool", "function")
	d := recall.Draft{Role: chatRoles[named]}
	if d.Role != recall.Assistant {
		for _, name := range []string{"tool_calls", "function_call"} {
			if m.Has(name) && string(m.fields[name]) != "[]" {
				m.Refuse(name, "only a message of role assistant calls tools")
			}
		}
	}
	switch {
	case d.Role == recall.Tool && isResult(m, named):
		d.Content = []recall.Part{readResult(m, named)}
	case d.Role == recall.Assistant:
		if d.Content = readAnswer(m, exact); len(d.Content) == 0 {
			m.Refuse("content", "expected a text, or a list of parts, in a message without tool_calls")
		}
	default:
		if d.Content = m.Content("content", chatParts); len(d.Content) == 0 {
			m.Refuse("content", "expected a text, or a list of parts")
		}
	}
	return withoutResults(m, d)
}

// withoutResults moves a draft's tool results to a draft of their own.
func withoutResults(m Object, d recall.Draft) []recall.Draft {
	returned, rest := recall.Draft{Role: recall.Tool}, d
	rest.Content = nil
	for _, p := range d.Content {
		if p.Type == recall.ToolReturn {
			returned.Content = append(returned.Content, p)
		} else {
			rest.Content = append(rest.Content, p)
		}
	}
	switch {
	case len(returned.Content) == 0:
		if d.Role == recall.Tool {
			m.Refuse("tool_call_id", "expected the id of the call that this is the result of")
		}
		return []recall.Draft{d}
	case len(rest.Content) == 0:
		return []recall.Draft{returned}
	}
	return []recall.Draft{returned, rest}
}

// isResult reports whether a message of role tool is itself one result. Otherwise its parts are results.
func isResult(m Object, role string) bool {
	return role == "function" || m.Has("tool_call_id")
}

// readResult reads a tool's result. A result of role function names no call; it belongs to the last call of that
// function.
func readResult(m Object, role string) recall.Part {
	p := recall.Part{Type: recall.ToolReturn}
	if role == "function" {
		p.CallID = functionCall(m.Needed("name"))
	} else {
		p.CallID = m.Needed("tool_call_id")
	}
	m.Result("content", &p)
	return p
}

// functionCall returns an id for a call in the old format, because calls in that format have none.
func functionCall(name string) string { return "function:" + name }

// strictness says how to read what a model wrote.
type strictness bool

const (
	exact strictness = false // exactly as it stands
	loose strictness = true  // as OpenAI-like servers mean it
)

// readAnswer reads what a model wrote: thoughts, words and calls.
func readAnswer(m Object, s strictness) []recall.Part {
	if m.Has("audio") {
		m.Refuse("audio", "sound is not kept; send what was said as content")
	}
	all := readThought(m)
	content := m.Content("content", chatParts)
	if s == loose {
		content = withThoughts(content)
	}
	if refusal := m.Text("refusal"); refusal != "" {
		content = append(content, recall.Part{Type: recall.Text, Text: refusal, Kind: recall.Refusal})
	}
	for i, p := range content {
		switch {
		case p.Type != recall.Text:
		case m.kind() == "message":
			content[i].Extra = m.extra(p, recall.ResponsesAPI, "phase")
		default:
			content[i].Extra = m.extra(p, recall.ChatAPI, "annotations")
		}
	}
	calls := readCalls(m, s)
	if len(calls) > 0 { // many servers send an empty text with calls
		content = slices.DeleteFunc(content, func(p recall.Part) bool { return p.Type == recall.Text && p.Text == "" })
	}
	return append(append(all, content...), calls...)
}

// readThought reads the reasoning that stands beside the content of a chat completion's message.
func readThought(m Object) []recall.Part {
	p := recall.Part{Type: recall.Reasoning, Native: true}
	for _, kind := range []recall.PartKind{recall.ReasoningContent, recall.ReasoningField} {
		if p.Text = m.Thought(string(kind)); p.Text != "" {
			p.Kind = kind
			break
		}
	}
	if p.Extra = m.extra(p, recall.ChatAPI, "reasoning_details"); p.Text == "" && p.Extra == "" {
		return nil
	}
	return []recall.Part{p}
}

// Thought returns a model's reasoning in the form of DeepSeek, vLLM and others: a text. A field "reasoning" of another
// shape is ignored.
func (i Object) Thought(name string) string {
	if name == "reasoning" && i.Has(name) && i.fields[name][0] != '"' {
		return ""
	}
	return i.Text(name)
}

// withThoughts turns thoughts in tags at the beginning of the first text into reasoning.
func withThoughts(parts []recall.Part) []recall.Part {
	i := slices.IndexFunc(parts, func(p recall.Part) bool { return p.Type == recall.Text })
	if i < 0 {
		return parts
	}
	tagged := Thoughts{}
	thought, text := tagged.Add(parts[i].Text)
	more, rest := tagged.End()
	if thought += more; thought == "" {
		return parts
	}
	parts[i].Text = text + rest
	return slices.Insert(parts, i, recall.Part{Type: recall.Reasoning, Text: thought, Native: true})
}

func readCalls(m Object, s strictness) (calls []recall.Part) {
	for _, c := range m.Items("tool_calls", "a list of calls") {
		p := recall.Part{Type: recall.ToolCall, CallID: c.Text("id"), Signature: ThoughtSignature(c.fields["extra_content"])}
		if s == exact {
			p.CallID = c.Needed("id")
		}
		if c.Has("custom") {
			custom := c.Object("custom")
			p.Kind, p.Name, p.Input = recall.CustomCall, custom.Called("name"), custom.Given("input")
		} else {
			function := c.Object("function")
			p.Name, p.Input = function.Called("name"), function.Arguments("arguments")
		}
		calls = append(calls, p)
	}
	if m.Has("function_call") {
		function := m.Object("function_call")
		name := function.Called("name")
		calls = append(calls, recall.Part{Type: recall.ToolCall, CallID: functionCall(name), Name: name,
			Input: function.Arguments("arguments")})
	}
	return calls
}

// Arguments returns a call's arguments as the model wrote them: a JSON text or, from some clients, a JSON object. Any
// other JSON is what the model wrote in place of arguments.
func (i Object) Arguments(name string) string {
	if !i.Has(name) {
		return ""
	}
	if i.fields[name][0] != '"' {
		return string(compact(i.fields[name]))
	}
	return i.Text(name)
}

// Called returns the name of the tool that a model calls. A model may write any text there, even an empty one.
func (i Object) Called(name string) string { return recall.CalledName(i.Given(name)) }

func readText(p Object) recall.Part {
	t := recall.Part{Type: recall.Text, Text: p.Given("text"), Signature: p.Text("signature")}
	if p.Has("citations") {
		t.Extra = p.extra(t, recall.AnthropicAPI, "citations")
	} else {
		t.Extra = p.extra(t, recall.ResponsesAPI, "annotations")
	}
	return t
}

func readRefusal(p Object) recall.Part {
	return recall.Part{Type: recall.Text, Text: p.Given("refusal"), Kind: recall.Refusal}
}

// readInputImage reads an image in the form of OpenAI's Responses API.
func readInputImage(p Object) recall.Part { return imageAt(p, "image_url", p.Text("detail")) }

func readImageURL(p Object) recall.Part {
	if p.Has("image_url") && p.fields["image_url"][0] == '"' { // from some clients
		return imageAt(p, "image_url", "")
	}
	o := p.Object("image_url")
	return imageAt(o, "url", o.Text("detail"))
}

// imageAt reads an image's address, which may contain the image itself.
func imageAt(o Object, name, detail string) recall.Part {
	url := o.Needed(name)
	rest, inline := strings.CutPrefix(url, "data:")
	if !inline {
		return recall.Part{Type: recall.Image, Source: source(map[string]string{"type": "url", "url": url})}
	}
	head, data, _ := strings.Cut(rest, ",")
	media, isBase64 := strings.CutSuffix(head, ";base64")
	if !isBase64 || !strings.HasPrefix(media, "image/") || !isBase64Text(data) {
		o.Refuse(name, "expected the address of an image, or data:image/<format>;base64,<the image>")
	}
	fields := map[string]string{"type": "base64", "media_type": media, "data": data}
	if detail != "" {
		fields["detail"] = detail
	}
	return recall.Part{Type: recall.Image, Source: source(fields)}
}

func isBase64Text(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != ""
}
