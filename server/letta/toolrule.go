package letta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// ruleTypes are the types of tool rules.
var ruleTypes = []string{"run_first", exitLoop, "continue_loop", "conditional", "constrain_child_tools",
	"max_count_per_step", "parent_last_tool", "required_before_exit", requiresApproval}

// ToolRule is a rule in a request. It may have the fields of any type of rule.
type ToolRule struct{ rest.Object }

// Schema implements huma.SchemaProvider.
func (ToolRule) Schema(rest.Registry) *rest.Schema {
	s := &rest.Schema{Type: "object", Properties: map[string]*rest.Schema{}, AdditionalProperties: true}
	for name, doc := range ruleFields {
		s.Properties[name] = &rest.Schema{Description: doc}
	}
	return s
}

// ruleFields maps the fields of rules to their descriptions.
var ruleFields = map[string]string{
	"type":                   "One of " + strings.Join(ruleTypes, ", ") + ".",
	"tool_name":              "The tool that the rule is about.",
	"prompt_template":        "How the model is told of the rule; kept, and not used.",
	"children":               "The tools that may be called after it.",
	"child_output_mapping":   "The tool that may be called after it, by what it returns.",
	"default_child":          "The tool that may be called after any other result.",
	"require_output_mapping": "Whether only results of child_output_mapping may go on.",
	"max_count_limit":        "How often the tool may be called in a turn.",
	"args":                   "Not served, and left out of the rule.",
	"child_arg_nodes":        "Not served, and left out of the rule.",
}

// ToolRuleNames returns the names of all tools in stored rules.
func ToolRuleNames(rules json.RawMessage) (names []string) {
	var list []struct {
		Tool     string             `json:"tool_name"`
		Children []string           `json:"children"`
		Outputs  map[string]*string `json:"child_output_mapping"`
		Default  *string            `json:"default_child"`
	}
	_ = json.Unmarshal(rules, &list) // older rules were stored unchecked
	for _, r := range list {
		names = append(append(names, r.Tool), r.Children...)
		for _, child := range r.Outputs {
			if child != nil {
				names = append(names, *child)
			}
		}
		if r.Default != nil {
			names = append(names, *r.Default)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// prefilled are the fields of rules that set arguments of calls in advance.
var prefilled = []string{"args", "child_arg_nodes"}

// withoutArguments returns a rule without the fields that set arguments of calls, and the names of these fields. A rule
// that has none stays as it is.
func withoutArguments(raw rest.Object) (rest.Object, []string) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // the schema says that it is an object
	var names []string
	for _, name := range prefilled {
		if value := string(fields[name]); value != "" && value != "null" && value != "{}" && value != "[]" {
			names = append(names, name)
			delete(fields, name)
		}
	}
	if names == nil {
		return raw, nil
	}
	return rest.Object(chat.Encode(fields)), names
}

// toolRules returns the rules of a request without duplicates; nil if there are none. Rules that differ only in null
// fields are duplicates. Arguments of calls are left out. A 422 for a rule without a tool, of an unknown type, with a
// count but no limit, or without names of its children.
func toolRules(sent []ToolRule) (json.RawMessage, error) {
	if sent == nil {
		return nil, nil
	}
	distinct, values := []rest.Object{}, []map[string]any{}
	for i, rule := range sent {
		raw := rule.Object
		var r struct {
			Type string          `json:"type"`
			Tool string          `json:"tool_name"`
			Max  json.RawMessage `json:"max_count_limit"`

			Children []string                   `json:"children"`
			Outputs  map[string]json.RawMessage `json:"child_output_mapping"`
			Default  *string                    `json:"default_child"`
		}
		place := fmt.Sprintf("body.tool_rules[%d]", i)
		if json.Unmarshal(raw, &r) != nil || r.Tool == "" {
			return nil, rest.Unprocessable(place+".tool_name", "required: the name of a tool")
		}
		if !slices.Contains(ruleTypes, r.Type) {
			return nil, rest.Unprocessable(place+".type", fmt.Sprintf("expected one of %s. Got: %.50q",
				strings.Join(ruleTypes, ", "), r.Type))
		}
		if r.Type == "constrain_child_tools" && len(r.Children) == 0 {
			return nil, rest.Unprocessable(place+".children", "required: the tools that may be called after it")
		}
		if r.Type == "conditional" && len(r.Outputs) == 0 && r.Default == nil {
			return nil, rest.Unprocessable(place+".child_output_mapping",
				"required: the tools that may be called after it, by what it returns")
		}
		if limit := 0; r.Type == "max_count_per_step" && (json.Unmarshal(r.Max, &limit) != nil || limit < 1) {
			return nil, rest.Unprocessable(place+".max_count_limit", "required: how often the tool may be called, 1 or more")
		}
		raw, _ = withoutArguments(raw)
		var value map[string]any
		_ = json.Unmarshal(raw, &value) // raw was decoded above
		maps.DeleteFunc(value, func(_ string, v any) bool { return v == nil })
		if !slices.ContainsFunc(values, func(earlier map[string]any) bool { return reflect.DeepEqual(value, earlier) }) {
			distinct, values = append(distinct, raw), append(values, value)
		}
	}
	return chat.Encode(distinct), nil
}

// WithoutTools returns rules without those that name one of these tools, and the names of the tools in rules that were
// left out.
func WithoutTools(rules json.RawMessage, tools func(name string) bool) (json.RawMessage, []string) {
	var list []rest.Object
	_ = json.Unmarshal(rules, &list) // older rules were stored unchecked
	kept, dropped := []rest.Object{}, []string{}
	for _, rule := range list {
		named := ToolRuleNames(chat.Encode([]rest.Object{rule}))
		if i := slices.IndexFunc(named, tools); i >= 0 {
			dropped = append(dropped, named[i])
			continue
		}
		kept = append(kept, rule)
	}
	if len(dropped) == 0 {
		return rules, nil
	}
	return chat.Encode(kept), dropped
}

// The tools of which Letta gives an agent a rule: calls of ending end a turn, after those of going it goes on.
var (
	ending = []string{agent.SendMessage, agent.MemoryFinishEdits}
	going  = []string{"conversation_search", "archival_memory_insert", "archival_memory_search", "core_memory_append",
		"core_memory_replace", "memory", "memory_apply_patch", "memory_replace", "memory_insert", "memory_rethink"}
)

// WithBaseRules adds Letta's rules of its base tools to rules, for those of an agent's tools that have none of that
// type. It returns the rules as they are if that adds nothing.
func WithBaseRules(rules json.RawMessage, tools []string) json.RawMessage {
	var list []rest.Object
	_ = json.Unmarshal(rules, &list) // the rules of a request are a list, if they are there
	n := len(list)
	for _, name := range tools {
		kind := ""
		switch {
		case slices.Contains(ending, name):
			kind = exitLoop
		case slices.Contains(going, name):
			kind = "continue_loop"
		}
		if kind != "" && !hasRule(list[:n], kind, name) {
			list = append(list, rest.Object(chat.Encode(map[string]string{"tool_name": name, "type": kind})))
		}
	}
	if len(list) == n {
		return rules
	}
	return chat.Encode(list)
}

func hasRule(rules []rest.Object, kind, tool string) bool {
	return slices.ContainsFunc(rules, func(raw rest.Object) bool {
		var r struct {
			Type string `json:"type"`
			Tool string `json:"tool_name"`
		}
		return json.Unmarshal(raw, &r) == nil && r.Type == kind && r.Tool == tool
	})
}

const exitLoop = "exit_loop"

// requiresApproval is the type of rule that makes a tool's calls wait for the client's approval.
const requiresApproval = "requires_approval"

// Approval says whether calls of a tool wait for approval. One of Letta's clients sends the Alias.
type Approval struct {
	Requires rest.Opt[bool] `json:"requires_approval,omitzero" doc:"Whether calls of the tool wait for approval."`
	Alias    rest.Opt[bool] `json:"body_requires_approval,omitzero" deprecated:"true" doc:"In place of requires_approval."`
}

// Required returns the decision: from the body or else from the query. A 422 if neither has one.
func (a Approval) Required(query rest.Opt[bool]) (bool, error) {
	said := cmp.Or(a.Requires.Pointer(), a.Alias.Pointer(), query.Pointer())
	if said == nil {
		return false, rest.Unprocessable("body.requires_approval", "required: whether calls of the tool wait for approval")
	}
	return *said, nil
}

// WithApproval returns stored rules, changed so that calls of a tool wait for approval or do not. It returns nil if
// nothing changes.
func WithApproval(rules json.RawMessage, tool string, required bool) json.RawMessage {
	var list []rest.Object
	_ = json.Unmarshal(rules, &list) // older rules were stored unchecked
	others := slices.DeleteFunc(append([]rest.Object{}, list...), func(raw rest.Object) bool {
		return hasRule([]rest.Object{raw}, requiresApproval, tool)
	})
	switch wasRequired := len(others) < len(list); {
	case wasRequired == required:
		return nil
	case required:
		rule := chat.Encode(map[string]string{"tool_name": tool, "type": requiresApproval})
		others = append(others, rest.Object(rule))
	}
	return chat.Encode(others)
}
