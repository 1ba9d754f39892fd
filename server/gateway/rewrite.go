package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall/chat"
)

// object is a JSON object of a provider.
type object = map[string]any

// rewriting is what is changed in an answer: calls that are not the client's are left out, and the usage of earlier
// answers is added.
type rewriting struct {
	format string
	hidden map[string]bool // ids of the calls
	usage  object          // of the earlier answers; nil: there are none
	tools  map[string]bool // names of tools that are not the client's
	places map[int]bool    // in a stream, the indexes of hidden calls
}

// usageOf returns the usage that an answer states; nil if it states none.
func usageOf(format string, whole []byte) (usage object) {
	usage = object{}
	add := func(more any) {
		if m, is := more.(object); is {
			maps.Copy(usage, m)
		}
	}
	for _, raw := range objectsOf(whole) {
		o := decoded(raw)
		add(o["usage"])
		if message, is := o["message"].(object); is && format == model.FormatAnthropic {
			add(message["usage"])
		}
		if response, is := o["response"].(object); is && format == model.FormatResponses {
			add(response["usage"])
		}
	}
	if len(usage) == 0 {
		return nil
	}
	return usage
}

// plus adds numbers to those with the same names, also within objects. Of names in except nothing is added.
func plus(usage, more object, except ...string) {
	for name, value := range more {
		if slices.Contains(except, name) {
			continue
		}
		switch value := value.(type) {
		case json.Number:
			if n, is := usage[name].(json.Number); is {
				a, errA := n.Int64()
				b, errB := value.Int64()
				if errA == nil && errB == nil {
					usage[name] = a + b
				}
			}
		case int64:
			if n, is := usage[name].(json.Number); is {
				if a, err := n.Int64(); err == nil {
					usage[name] = a + value
				}
			}
		case object:
			if within, is := usage[name].(object); is {
				plus(within, value)
			}
		}
	}
}

// decoded returns a JSON object with its numbers as they stand; nil for anything else.
func decoded(raw []byte) (o object) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&o) // as documented
	return o
}

// eventsOf cuts a stream into its events, each with the empty line behind it.
func eventsOf(stream []byte) (events [][]byte) {
	for len(stream) > 0 {
		end := len(stream)
		for _, mark := range []string{"\n\n", "\r\n\r\n"} {
			if i := bytes.Index(stream, []byte(mark)); i >= 0 {
				end = min(end, i+len(mark))
			}
		}
		events = append(events, stream[:end])
		stream = stream[end:]
	}
	return events
}

// dataOf returns the data of an event, and where it stands in it.
func dataOf(event []byte) (data []byte, at span) {
	for i := 0; i < len(event); {
		end := bytes.IndexByte(event[i:], '\n')
		if end < 0 {
			end = len(event) - i
		}
		line := bytes.TrimRight(event[i:i+end], "\r")
		if rest, is := bytes.CutPrefix(line, []byte("data:")); is {
			from := i + len(line) - len(bytes.TrimLeft(rest, " "))
			return event[from : i+len(line)], span{from, i + len(line)}
		}
		i += end + 1
	}
	return nil, span{}
}

// objectsOf returns the JSON objects of an answer: the data of a stream's events, or all of it.
func objectsOf(whole []byte) (all [][]byte) {
	if trimmed := bytes.TrimSpace(whole); len(trimmed) > 0 && trimmed[0] == '{' {
		return [][]byte{trimmed}
	}
	for _, e := range eventsOf(whole) {
		if data, _ := dataOf(e); len(data) > 0 && data[0] == '{' {
			all = append(all, data)
		}
	}
	return all
}

// answer returns the changed answer.
func (r *rewriting) answer(whole []byte) []byte {
	if trimmed := bytes.TrimSpace(whole); len(trimmed) > 0 && trimmed[0] == '{' {
		o := decoded(trimmed)
		r.change(o)
		return chat.Encode(o)
	}
	r.places = map[int]bool{}
	events := eventsOf(whole)
	for _, e := range events {
		data, _ := dataOf(e)
		r.find(decoded(data))
	}
	var out bytes.Buffer
	for _, e := range events {
		data, at := dataOf(e)
		o := decoded(data)
		before := string(chat.Encode(o))
		if o != nil && !r.changeEvent(o) {
			continue
		}
		after := chat.Encode(o)
		if o == nil || string(after) == before {
			out.Write(e)
			continue
		}
		out.Write(e[:at.from])
		out.Write(after)
		out.Write(e[at.to:])
	}
	return out.Bytes()
}

// find notes the place of a hidden call that begins in an event.
func (r *rewriting) find(o object) {
	note := func(place, id any) {
		if text, _ := id.(string); r.hidden[text] {
			r.places[intOf(place)] = true
		}
	}
	switch {
	case r.format == model.FormatAnthropic && o["type"] == "content_block_start":
		block, _ := o["content_block"].(object)
		note(o["index"], block["id"])
	case r.format == model.FormatResponses && o["type"] == "response.output_item.added":
		item, _ := o["item"].(object)
		note(o["output_index"], item["call_id"])
	case r.format == model.FormatOpenAI:
		for _, call := range callsOf(deltaOf(o)) {
			note(call["index"], call["id"])
		}
	}
}

// change changes an answer that is no stream, or the whole response at the end of one.
func (r *rewriting) change(o object) {
	without := func(of object, list, id string) {
		items, is := of[list].([]any)
		if !is {
			return
		}
		of[list] = slices.DeleteFunc(items, func(item any) bool {
			o, _ := item.(object)
			text, _ := o[id].(string)
			return text != "" && r.hidden[text]
		})
	}
	switch r.format {
	case model.FormatAnthropic:
		without(o, "content", "id")
	case model.FormatResponses:
		without(o, "output", "call_id")
		if tools, is := o["tools"].([]any); is { // the request's, as the provider got them
			o["tools"] = slices.DeleteFunc(tools, func(tool any) bool {
				t, _ := tool.(object)
				name, _ := t["name"].(string)
				return r.tools[name]
			})
		}
	default:
		if message, is := choiceOf(o)["message"].(object); is {
			without(message, "tool_calls", "id")
		}
	}
	r.count(o)
}

// count adds the usage of the earlier answers.
func (r *rewriting) count(o object, except ...string) {
	if usage, is := o["usage"].(object); is {
		plus(usage, r.usage, except...)
	}
}

// changeEvent changes an event, and reports whether it is sent.
func (r *rewriting) changeEvent(o object) bool {
	switch r.format {
	case model.FormatAnthropic:
		if message, is := o["message"].(object); is {
			r.count(message, "output_tokens")
		}
		r.count(o)
		return r.moved(o, "index")
	case model.FormatResponses:
		if response, is := o["response"].(object); is {
			r.change(response)
		}
		return r.moved(o, "output_index")
	}
	r.count(o)
	delta := deltaOf(o)
	calls, has := delta["tool_calls"].([]any)
	if !has || len(r.places) == 0 {
		return true
	}
	left := slices.DeleteFunc(slices.Clone(calls), func(call any) bool {
		c, _ := call.(object)
		return !r.moved(c, "index")
	})
	if delta["tool_calls"] = left; len(left) == 0 {
		delete(delta, "tool_calls")
	}
	finish := choiceOf(o)["finish_reason"]
	return len(left) > 0 || len(delta) > 0 || finish != nil || o["usage"] != nil
}

// moved lowers an index by the hidden calls before it, and reports whether it is no hidden call's.
func (r *rewriting) moved(o object, name string) bool {
	if _, has := o[name]; !has {
		return true
	}
	index, before := intOf(o[name]), 0
	for place := range r.places {
		if place < index {
			before++
		}
	}
	if before > 0 {
		o[name] = index - before
	}
	return !r.places[index]
}

func intOf(number any) int {
	n, _ := number.(json.Number)
	i, _ := n.Int64() // a number of another form is none
	return int(i)
}

// choiceOf returns the first choice of an answer to a chat request.
func choiceOf(o object) object {
	choices, _ := o["choices"].([]any)
	for _, choice := range choices {
		if c, is := choice.(object); is && intOf(c["index"]) == 0 {
			return c
		}
	}
	return nil
}

func deltaOf(o object) object {
	delta, _ := choiceOf(o)["delta"].(object)
	return delta
}

func callsOf(delta object) (all []object) {
	calls, _ := delta["tool_calls"].([]any)
	for _, call := range calls {
		if c, is := call.(object); is {
			all = append(all, c)
		}
	}
	return all
}

// isStream reports whether an answer is a stream of events.
func isStream(contentType string) bool { return strings.HasPrefix(contentType, "text/event-stream") }
