package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// PartReaders maps a part's type to its reader. No two formats use the same type for different parts.
type PartReaders map[string]func(Object) recall.Part

// PlainParts read the parts that a message says and shows, and that a tool returns.
var PlainParts = PartReaders{"text": readText, "input_text": readText, "output_text": readText, "refusal": readRefusal,
	"image_url": readImageURL, "input_image": readInputImage, "image": readImage}

// chatParts read all parts of a message.
var chatParts = PartReaders{
	"tool_call": readToolCallPart, "tool_return": readToolReturnPart, "reasoning": readReasoning,
	"redacted_reasoning": readRedacted, "omitted_reasoning": readOmitted, "summarized_reasoning": readSummarized,
	"tool_use": readToolUse, "tool_result": readToolResult, "thinking": readThinking, "redacted_thinking": readRedacted,
}.with(PlainParts)

func (known PartReaders) with(more PartReaders) PartReaders {
	maps.Copy(known, more)
	for _, kind := range sealedBlocks {
		known[kind] = readSealedBlock
	}
	return known
}

// refusedParts maps types of parts that are not read to the reason.
var refusedParts = map[string]string{
	"document":    notKept,
	"file":        notKept,
	"input_file":  notKept,
	"input_audio": "sound is not kept; send what was said as a part of type text",
}

const notKept = "files are not kept in messages; upload it to a folder, or send its text as a part of type text"

// Content returns a message's parts, at least one. The field is a list of parts or a text; an absent field has no
// parts.
func (i Object) Content(name string, known PartReaders) []recall.Part {
	switch {
	case !i.Has(name):
		return nil
	case i.fields[name][0] == '"':
		return []recall.Part{{Type: recall.Text, Text: i.Text(name)}}
	case i.fields[name][0] != '[':
		i.Refuse(name, "expected a text, or a list of parts")
		return nil
	}
	items := i.Items(name, "a text, or a list of parts")
	all := make([]recall.Part, 0, len(items))
	for _, p := range items {
		kind := p.Needed("type")
		read := known[kind]
		if read == nil {
			p.Refuse("type", known.why(kind))
			return nil
		}
		part := read(p)
		if p.Has("cache_control") {
			part.Extra = p.extra(part, recall.AnthropicAPI, "cache_control")
		}
		all = append(all, part)
	}
	return all
}

func (known PartReaders) why(kind string) string {
	if why := refusedParts[kind]; why != "" {
		return why
	}
	return "expected one of " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// Result reads a tool's output into result: a text, or texts and images in their order.
func (i Object) Result(name string, result *recall.Part) {
	if !i.Has(name) {
		i.Refuse(name, "expected what the tool returned: a text, or a list of parts")
	}
	result.SetReturned(i.Content(name, PlainParts))
}

// source returns an image's source in Letta's form: an object of texts.
func source(fields map[string]string) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("chat: texts are not JSON: %v", err))
	}
	return raw
}

func readToolCallPart(p Object) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: p.Needed("id"), Name: p.Called("name"), Input: p.Arguments("input"),
		Signature: p.Text("signature")}
}

func readToolReturnPart(p Object) recall.Part {
	r := recall.Part{Type: recall.ToolReturn, CallID: p.Needed("tool_call_id"), IsError: p.Flag("is_error")}
	p.Result("content", &r)
	return r
}

func readReasoning(p Object) recall.Part {
	return recall.Part{Type: recall.Reasoning, Text: p.Given("reasoning"), Native: p.Flag("is_native"),
		Signature: p.Text("signature")}
}

func readRedacted(p Object) recall.Part {
	return recall.Part{Type: recall.RedactedReasoning, Data: p.Given("data")}
}

func readOmitted(p Object) recall.Part {
	return recall.Part{Type: recall.OmittedReasoning, Signature: p.Text("signature")}
}

// readSummarized reads a summary of reasoning. Its texts are searched; the other fields are kept as received.
func readSummarized(p Object) recall.Part {
	var texts []string
	for _, s := range p.Items("summary", "a list of texts with their index") {
		texts = append(texts, s.Given("text"))
	}
	if !p.Has("summary") {
		p.Refuse("summary", "expected a list of texts with their index")
	}
	return recall.Part{Type: recall.SummarizedReasoning, CallID: p.Text("id"), Text: strings.Join(texts, "\n"),
		Data:    p.Text("encrypted_content"),
		Summary: compact(p.fields["summary"])}
}

// readImage reads an image in the form that Letta and Anthropic share.
func readImage(p Object) recall.Part {
	s := p.Object("source")
	kind := s.OneOf("type", "url", "base64", "letta")
	fields := map[string]string{"type": kind}
	for _, name := range []string{"url", "media_type", "data", "file_id", "detail"} {
		if value := s.Text(name); value != "" {
			fields[name] = value
		}
	}
	for _, name := range map[string][]string{"url": {"url"}, "base64": {"media_type", "data"},
		"letta": {"file_id"}}[kind] {
		s.Needed(name)
	}
	return recall.Part{Type: recall.Image, Source: source(fields)}
}

// compact returns JSON without spaces between its tokens.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // cannot happen: it was parsed before
	}
	return b.Bytes()
}
