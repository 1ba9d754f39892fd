package recall

import (
	"bytes"
	"encoding/json"
	"slices"
)

// thoughtArguments are the arguments of calls in which models of Letta's older agents write what they think.
var thoughtArguments = []string{"inner_thoughts", "thinking"}

// AsThoughts returns the parts of an answer by an agent that speaks with a tool: its texts are thoughts, and so are
// arguments of its calls in which such models think.
func AsThoughts(parts []Part) []Part {
	var all []Part
	for _, p := range parts {
		switch {
		case p.Type == Text && p.Kind == "":
			p.Kind = InnerThought
		case p.Type == ToolCall && p.Kind == "":
			var thoughts []Part
			p.Input, thoughts = withoutThoughts(p.Input)
			all = append(all, thoughts...)
		}
		all = append(all, p)
	}
	return all
}

// withoutThoughts returns a call's arguments without thoughts, and the thoughts. Other arguments keep their order.
func withoutThoughts(input string) (rest string, thoughts []Part) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil ||
		!slices.ContainsFunc(thoughtArguments, func(name string) bool { return fields[name] != nil }) {
		return input, nil
	}
	read := json.NewDecoder(bytes.NewReader([]byte(input)))
	_, _ = read.Token() // the input is an object
	out := []byte{'{'}
	for read.More() {
		name, _ := read.Token()
		var value json.RawMessage
		if read.Decode(&value) != nil {
			return input, nil
		}
		var thought string
		isThought := slices.Contains(thoughtArguments, name.(string))
		if isThought && json.Unmarshal(value, &thought) == nil {
			if thought != "" {
				thoughts = append(thoughts, Part{Type: Text, Kind: InnerThought, Text: thought})
			}
			continue
		}
		if len(out) > 1 {
			out = append(out, ", "...)
		}
		out = append(append(append(out, quoted(name.(string))...), ": "...), value...)
	}
	return string(append(out, '}')), thoughts
}
