package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// param describes a field in the params of a method.
type param struct {
	path     string // names joined by dots
	kind     string // one of the kinds below
	required bool
}

// The kinds of JSON values, in the words of error messages.
const (
	textKind   = "a text"
	objectKind = "an object"
	numberKind = "a number"
	listKind   = "a list"
	boolKind   = "true or false"

	// These kinds are only expected; kindOf never returns them.
	listOfTexts  = "a list of texts"
	textsKind    = "an object of texts"
	textOrNumber = "a text or a number"
)

// ofAll are the fields that the params of every method may have.
var ofAll = []param{{"_meta", objectKind, false}, {"_meta.progressToken", textOrNumber, false}}

// params are the fields that are checked before the SDK reads them, because the SDK's errors about wrong kinds name its
// own Go types.
var params = map[string][]param{
	"initialize": {{"protocolVersion", textKind, false}, {"capabilities", objectKind, false},
		{"clientInfo", objectKind, false}, {"clientInfo.name", textKind, false}, {"clientInfo.version", textKind, false},
		{"clientInfo.title", textKind, false}},
	"tools/list":               {{"cursor", textKind, false}},
	"resources/list":           {{"cursor", textKind, false}},
	"resources/templates/list": {{"cursor", textKind, false}},
	"prompts/list":             {{"cursor", textKind, false}},
	"tools/call":               {{"name", textKind, true}}, // a result tells the model what is wrong with its arguments
	"prompts/get":              {{"name", textKind, true}, {"arguments", textsKind, false}},
	"resources/read":           {{"uri", textKind, true}},
	"resources/subscribe":      {{"uri", textKind, true}},
	"resources/unsubscribe":    {{"uri", textKind, true}},
	Listen: {{"notifications", objectKind, true}, {"notifications.toolsListChanged", boolKind, false},
		{"notifications.promptsListChanged", boolKind, false}, {"notifications.resourcesListChanged", boolKind, false},
		{"notifications.resourceSubscriptions", listOfTexts, false}},
	"completion/complete": {{"ref", objectKind, true}, {"ref.type", textKind, false}, {"ref.name", textKind, false},
		{"ref.uri", textKind, false}, {"argument", objectKind, true}, {"argument.name", textKind, false},
		{"argument.value", textKind, false}},
}

// wrongParams describes the first mistake in a message's params in a sentence; empty if there is none.
func wrongParams(method string, raw json.RawMessage) string {
	if kind := kindOf(raw); kind != "" && kind != objectKind {
		return fmt.Sprintf("params: expected an object, not %s", kind)
	} else if kind == "" && method == "initialize" {
		return "params is missing: it is an object with protocolVersion, capabilities and clientInfo"
	}
	for _, p := range slices.Concat(ofAll, params[method]) {
		place, value := "params", raw
		for name := range strings.SplitSeq(p.path, ".") {
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(value, &fields) // a value of another kind has no fields
			place, value = place+"."+name, fields[name]
		}
		kind := kindOf(value)
		switch {
		case kind == "" && p.required:
			return fmt.Sprintf("%s is missing: it is %s", place, p.kind)
		case kind == "" || kind == p.kind || p.kind == textOrNumber && (kind == textKind || kind == numberKind):
		case p.kind == listOfTexts && kind == listKind:
			var items []json.RawMessage
			_ = json.Unmarshal(value, &items) // it is a list
			for i, item := range items {
				if kindOf(item) != textKind {
					return fmt.Sprintf("%s[%d]: expected a text, not %s", place, i, cmp.Or(kindOf(item), "null"))
				}
			}
		case p.kind != textsKind:
			return fmt.Sprintf("%s: expected %s, not %s", place, p.kind, kind)
		case kind != objectKind:
			return fmt.Sprintf("%s: expected an object, not %s", place, kind)
		default:
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(value, &fields) // it is an object
			for name, field := range fields {
				if kind := kindOf(field); kind != "" && kind != textKind {
					return fmt.Sprintf("%s.%s: expected a text, not %s", place, name, kind)
				}
			}
		}
	}
	return ""
}

// kindOf returns the kind of a JSON value; empty if it is null or missing.
func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		return textKind
	case '{':
		return objectKind
	case '[':
		return listKind
	case 't', 'f':
		return boolKind
	case 'n':
		return ""
	}
	return numberKind
}
