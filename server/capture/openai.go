package capture

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// chatRoles are the roles of OpenAI's chat; function is what tools were once.
var chatRoles = map[string]recall.Role{
	"system": recall.System, "developer": recall.System, "user": recall.User, "assistant": recall.Assistant,
	"tool": recall.Tool, "function": recall.Tool,
}

// readChat reads a message of OpenAI's chat, and one that Letta is asked to create, which is the same with other parts.
func readChat(m item) recall.Draft {
	named := m.oneOf("role", "system", "developer", "user", "assistant", "tool", "function")
	d := recall.Draft{Role: chatRoles[named]}
	if d.Role != recall.Assistant {
		for _, name := range []string{"tool_calls", "function_call"} {
			if m.has(name) && string(m.fields[name]) != "[]" {
				m.refuse(name, "only a message of role assistant calls tools")
			}
		}
	}
	switch {
	case d.Role == recall.Tool && isResult(m, named):
		d.Content = []recall.Part{readResult(m, named)}
	case d.Role == recall.Assistant:
		d.Content = readAnswer(m)
	default:
		if d.Content = m.content("content", chatParts); len(d.Content) == 0 {
			m.refuse("content", "expected a text, or a list of parts")
		}
	}
	return ofResults(m, d)
}

// ofResults makes a message that has nothing but the results of tools one of role tool. Beside other parts they
// cannot be.
func ofResults(m item, d recall.Draft) recall.Draft {
	results := 0
	for _, p := range d.Content {
		if p.Type == recall.ToolReturn {
			results++
		}
	}
	switch {
	case results > 0 && results == len(d.Content):
		d.Role = recall.Tool
	case results > 0:
		m.refuse("content", "parts of type tool_return cannot stand beside others; send them as a message of their own")
	case d.Role == recall.Tool:
		m.refuse("tool_call_id", "expected the id of the call that this is the result of")
	}
	return d
}

// isResult tells a message of role tool that is one result from one whose parts are results.
func isResult(m item, role string) bool {
	return role == "function" || m.has("tool_call_id")
}

// readResult reads the result of a tool. One of role function names no call: it is the last one of that function.
func readResult(m item, role string) recall.Part {
	p := recall.Part{Type: recall.ToolReturn}
	if role == "function" {
		p.CallID = functionCall(m.needed("name"))
	} else {
		p.CallID = m.needed("tool_call_id")
	}
	p.Text, p.Images = m.result("content")
	return p
}

// functionCall is the id of a call of a function from when calls had none.
func functionCall(name string) string { return "function:" + name }

// readAnswer reads what a model wrote: its thoughts, its words, its calls.
func readAnswer(m item) []recall.Part {
	var all []recall.Part
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if thought := m.thought(name); thought != "" {
			all = append(all, recall.Part{Type: recall.Reasoning, Text: thought, Native: true})
			break
		}
	}
	said := m.content("content", chatParts)
	if refusal := m.text("refusal"); refusal != "" {
		said = append(said, recall.Part{Type: recall.Text, Text: refusal})
	}
	calls := readCalls(m)
	if len(calls) > 0 { // many send an empty text beside calls
		said = slices.DeleteFunc(said, func(p recall.Part) bool { return p.Type == recall.Text && p.Text == "" })
	}
	if all = append(append(all, said...), calls...); len(all) == 0 {
		m.refuse("content", "expected a text, or a list of parts, in a message without tool_calls")
	}
	return all
}

// thought is what DeepSeek, vLLM and others send of a model's reasoning; what others send under the same name in
// another shape is not one.
func (i item) thought(name string) string {
	if name == "reasoning" && i.has(name) && i.fields[name][0] != '"' {
		return ""
	}
	return i.text(name)
}

func readCalls(m item) (calls []recall.Part) {
	for _, c := range m.items("tool_calls", "a list of calls") {
		p := recall.Part{Type: recall.ToolCall, CallID: c.needed("id")}
		if c.has("custom") {
			custom := c.object("custom")
			p.Name, p.Input = custom.needed("name"), custom.text("input")
		} else {
			function := c.object("function")
			p.Name, p.Input = function.needed("name"), function.arguments("arguments")
		}
		calls = append(calls, p)
	}
	if m.has("function_call") {
		function := m.object("function_call")
		name := function.needed("name")
		calls = append(calls, recall.Part{Type: recall.ToolCall, CallID: functionCall(name), Name: name,
			Input: function.arguments("arguments")})
	}
	return calls
}

// arguments are those of a call as the model wrote them: a JSON text, or, from some clients, an object already.
func (i item) arguments(name string) string {
	if !i.has(name) {
		return ""
	}
	if i.fields[name][0] == '{' {
		return string(compact(i.fields[name]))
	}
	return i.text(name)
}

func readText(p item) recall.Part {
	return recall.Part{Type: recall.Text, Text: p.given("text"), Signature: p.text("signature")}
}

// readRefusal reads what a model said where it would not do as it was told: words, like others.
func readRefusal(p item) recall.Part {
	return recall.Part{Type: recall.Text, Text: p.given("refusal")}
}

func readImageURL(p item) recall.Part {
	if p.has("image_url") && p.fields["image_url"][0] == '"' { // from some clients
		return imageAt(p, "image_url", "")
	}
	o := p.object("image_url")
	return imageAt(o, "url", o.text("detail"))
}

// imageAt reads the address of an image, which may be the image itself.
func imageAt(o item, name, detail string) recall.Part {
	url := o.needed(name)
	rest, inline := strings.CutPrefix(url, "data:")
	if !inline {
		return recall.Part{Type: recall.Image, Source: source(map[string]string{"type": "url", "url": url})}
	}
	head, data, _ := strings.Cut(rest, ",")
	media, isBase64 := strings.CutSuffix(head, ";base64")
	if !isBase64 || !strings.HasPrefix(media, "image/") || !isBase64Text(data) {
		o.refuse(name, "expected the address of an image, or data:image/<format>;base64,<the image>")
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

// readExchange reads a request of OpenAI's chat completions and its answer.
func readExchange(body item) []message {
	turns := readMessages(body, "request_messages")
	choices := body.object("response_dict").items("choices", "a list of choices")
	if len(choices) == 0 {
		body.refuse("response_dict", "expected choices, the first with the message that the model answered")
	}
	if body.failed() {
		return nil
	}
	answer := choices[0].object("message")
	if !answer.has("role") && answer.fields != nil {
		answer.fields["role"] = json.RawMessage(`"assistant"`)
	}
	t := readMessage(answer)
	t.Model = cmp.Or(t.Model, body.optional("model"))
	return append(turns, t)
}
