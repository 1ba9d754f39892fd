package capture

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// partReaders read the parts of a message's content, by their type. Those of OpenAI's format and of Letta's do not
// collide.
type partReaders map[string]func(item) recall.Part

// plainParts are what a message says and shows, and what a tool returns.
var plainParts = partReaders{"text": readText, "refusal": readRefusal, "image_url": readImageURL, "image": readImage}

// chatParts are all parts of a message.
var chatParts = partReaders{
	"text": readText, "refusal": readRefusal, "image_url": readImageURL, "image": readImage,
	"tool_call": readToolCallPart, "tool_return": readToolReturnPart, "reasoning": readReasoning,
	"redacted_reasoning": readRedacted, "omitted_reasoning": readOmitted, "summarized_reasoning": readSummarized,
}

// strangers are types of parts that are not understood, and why.
var strangers = map[string]string{
	"tool_use":    anthropics,
	"tool_result": anthropics,
	"thinking":    anthropics,
	"document":    anthropics,
	"input_audio": "sound is not kept; send what was said as a part of type text",
	"file":        "files are not kept in messages; upload it to a folder, or send its text as a part of type text",
}

const anthropics = "Anthropic's blocks are not understood yet; send the turn in OpenAI's format (tool_calls, and a " +
	"message of role tool for each " +
	"result) or in Letta's"

// content are the parts of a message, one at least: of a list, or a text as the only one. An absent field has none.
func (i item) content(name string, known partReaders) []recall.Part {
	switch {
	case !i.has(name):
		return nil
	case i.fields[name][0] == '"':
		return []recall.Part{{Type: recall.Text, Text: i.text(name)}}
	case i.fields[name][0] != '[':
		i.refuse(name, "expected a text, or a list of parts")
		return nil
	}
	items := i.items(name, "a text, or a list of parts")
	all := make([]recall.Part, 0, len(items))
	for _, p := range items {
		kind := p.needed("type")
		read := known[kind]
		if read == nil {
			p.refuse("type", known.why(kind))
			return nil
		}
		all = append(all, read(p))
	}
	return all
}

// why says why a part is not read.
func (known partReaders) why(kind string) string {
	if why := strangers[kind]; why != "" {
		return why
	}
	return "expected one of " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// result is what a tool returned: a text, or parts whose texts are joined by line ends and whose images are kept.
func (i item) result(name string) (text string, images []json.RawMessage) {
	if !i.has(name) {
		i.refuse(name, "expected what the tool returned: a text, or a list of parts")
	}
	var texts []string
	for _, p := range i.content(name, plainParts) {
		if p.Type == recall.Image {
			images = append(images, p.Source)
		} else {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), images
}

// source is an image's, as Letta has it: an object whose fields are texts.
func source(fields map[string]string) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("capture: texts are not JSON: %v", err))
	}
	return raw
}
