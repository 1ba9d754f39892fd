package letta

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// ruleTypes are the types of rules of tools.
var ruleTypes = []string{"run_first", "exit_loop", "continue_loop", "conditional", "constrain_child_tools",
	"max_count_per_step", "parent_last_tool", "required_before_exit", "requires_approval"}

// ToolRuleNames returns the tools that stored rules name.
func ToolRuleNames(rules json.RawMessage) (names []string) {
	var list []struct {
		Tool     string             `json:"tool_name"`
		Children []string           `json:"children"`
		Outputs  map[string]*string `json:"child_output_mapping"`
		Default  *string            `json:"default_child"`
	}
	_ = json.Unmarshal(rules, &list) // older rules were not checked
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

// toolRules returns the rules of a request without repeated ones, nil if it has none. A 422 for one without a tool or
// of a type that there is not.
func toolRules(given []rest.Object) (json.RawMessage, error) {
	if given == nil {
		return nil, nil
	}
	kept, read := []rest.Object{}, []any{}
	for i, raw := range given {
		var r struct {
			Type string `json:"type"`
			Tool string `json:"tool_name"`
		}
		at := fmt.Sprintf("body.tool_rules[%d]", i)
		if json.Unmarshal(raw, &r) != nil || r.Tool == "" {
			return nil, rest.Unprocessable(at+".tool_name", "required: the name of a tool")
		}
		if !slices.Contains(ruleTypes, r.Type) {
			return nil, rest.Unprocessable(at+".type", fmt.Sprintf("expected one of %s. Got: %.50q",
				strings.Join(ruleTypes, ", "), r.Type))
		}
		var value any
		_ = json.Unmarshal(raw, &value) // it was read above
		if !slices.ContainsFunc(read, func(other any) bool { return reflect.DeepEqual(value, other) }) {
			kept, read = append(kept, raw), append(read, value)
		}
	}
	return chat.Encode(kept), nil
}
