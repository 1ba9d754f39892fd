package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/recall/chat"
)

// toolRule is a rule for the use of a tool, as Letta's clients store it.
type toolRule struct {
	Type     string   `json:"type"`
	Tool     string   `json:"tool_name"`
	Children []string `json:"children"`
	Max      int      `json:"max_count_limit"`
}

// ruleTexts write a rule for the model, by its type, in Letta's words. Rules of other types are not shown.
var ruleTexts = map[string]func(toolRule) string{
	"constrain_child_tools": func(r toolRule) string {
		return fmt.Sprintf("After using %s, you must use one of these tools: %s", r.Tool, strings.Join(r.Children, ", "))
	},
	"parent_last_tool": func(r toolRule) string {
		return fmt.Sprintf("%s can only be used after %s", strings.Join(r.Children, ", "), r.Tool)
	},
	"conditional": func(r toolRule) string {
		return r.Tool + " will determine which tool to use next based on its output"
	},
	"exit_loop":            func(r toolRule) string { return r.Tool + " ends your response (yields control) when called" },
	"continue_loop":        func(r toolRule) string { return r.Tool + " requires continuing your response when called" },
	"required_before_exit": func(r toolRule) string { return r.Tool + " must be called before ending the conversation" },
	"max_count_per_step": func(r toolRule) string {
		return fmt.Sprintf("%s: at most %d use(s) per response", r.Tool,
			r.Max)
	},
}

const rulesIntroduction = `The following constraints define rules for tool usage and guide desired behavior. These ` +
	`rules must be followed to ensure proper tool execution and workflow. A single response may ` +
	`contain multiple tool calls.`

// renderRules writes the section of the prompt that states the rules of tools; empty if there is no rule to show. A
// rule's own template is ignored.
func renderRules(stored json.RawMessage) string {
	var rules []json.RawMessage
	if json.Unmarshal(stored, &rules) != nil { // absent, or not a list, which clients may store
		return ""
	}
	var b strings.Builder
	for _, raw := range rules {
		var r toolRule
		if json.Unmarshal(raw, &r) != nil || ruleTexts[r.Type] == nil || r.Tool == "" {
			continue
		}
		fmt.Fprintf(&b, "<tool_rule>\n%s\n</tool_rule>\n", chat.Neutralize(ruleTexts[r.Type](r)))
	}
	if b.Len() == 0 {
		return ""
	}
	return "<tool_usage_rules>\n<description>" + rulesIntroduction + "</description>\n\n" + b.String() +
		"</tool_usage_rules>"
}
