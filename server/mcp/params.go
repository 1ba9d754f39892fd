package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// param is a field that the params of a method may have.
type param struct {
	path     string // of names, with dots between them
	kind     string // one of the kinds that are found or expected
	required bool
}

// The kinds of JSON's values, as errors name them.
const (
	textKind   = "a text"
	objectKind = "an object"
	numberKind = "a number"
	listKind   = "a list"
	boolKind   = "true or false"

	// These are expected, and never found.
	listOfTexts  = "a list of texts"
	textsKind    = "an object of texts"
	textOrNumber = "a text or a number"
)

// ofAll are the fields that the params of each method may have.
var ofAll = []param{{"_meta", objectKind, false}, {"_meta.progressToken", textOrNumber, false}}

// params are the fields that are looked at before the SDK reads them: it names its own types where one is of another
// kind than it expects.
var params = map[string][]param{
	"initialize": {{"protocolVersion", textKind, false}, {"capabilities", objectKind, false},
		{"clientInfo", objectKind, false}, {"clientInfo.name", textKind, false}, {"clientInfo.version", textKind, false},
		{"clientInfo.title", textKind, false}},
	"tools/list":               {{"cursor", textKind, false}},
	"resources/list":           {{"cursor", textKind, false}},
	"resources/templates/list": {{"cursor", textKind, false}},
	"prompts/list":             {{"cursor", textKind, false}},
	"tools/call":               {{"name", textKind, true}, {"arguments", objectKind, false}},
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

// wrongParams returns a sentence on the first mistake in the params of a message; empty if there is none.
func wrongParams(method string, raw json.RawMessage) string {
	if kind := kindOf(raw); kind != "" && kind != objectKind {
		return fmt.Sprintf("params: expected an object, not %s", kind)
	} else if kind == "" && method == "initialize" {
		return "params is missing: it is an object with protocolVersion, capabilities and clientInfo"
	}
	for _, p := range slices.Concat(ofAll, params[method]) {
		at, value := "params", raw
		for name := range strings.SplitSeq(p.path, ".") {
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(value, &fields) // a value of another kind has no fields
			at, value = at+"."+name, fields[name]
		}
		kind := kindOf(value)
		switch {
		case kind == "" && p.required:
			return fmt.Sprintf("%s is missing: it is %s", at, p.kind)
		case kind == "" || kind == p.kind || p.kind == textOrNumber && (kind == textKind || kind == numberKind):
		case p.kind == listOfTexts && kind == listKind:
			var items []json.RawMessage
			_ = json.Unmarshal(value, &items) // it is a list
			for i, item := range items {
				if kindOf(item) != textKind {
					return fmt.Sprintf("%s[%d]: expected a text, not %s", at, i, cmp.Or(kindOf(item), "null"))
				}
			}
		case p.kind != textsKind:
			return fmt.Sprintf("%s: expected %s, not %s", at, p.kind, kind)
		case kind != objectKind:
			return fmt.Sprintf("%s: expected an object, not %s", at, kind)
		default:
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(value, &fields) // it is an object
			for name, field := range fields {
				if kind := kindOf(field); kind != "" && kind != textKind {
					return fmt.Sprintf("%s.%s: expected a text, not %s", at, name, kind)
				}
			}
		}
	}
	return ""
}

// kindOf returns the kind of a value; empty if it is null or not there.
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
