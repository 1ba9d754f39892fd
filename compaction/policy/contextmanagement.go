package policy

// byProvider is a step that Anthropic's API can carry out itself, without losing its cache of the prompt.
type byProvider interface {
	// edit returns the step as an entry of the request's context_management.edits, for a window in tokens. tools are the
	// names of the prompt's tools. It returns nil if the step works here.
	edit(tools []string, window int) map[string]any
}

// byProviderWords describes the setting by_provider.
const byProviderWords = "Whether Anthropic clears results in its copy of the prompt, so that its cache stays valid: " +
	"the request has the field context_management, and needs the header anthropic-beta: " +
	"context-management-2025-06-27. In other formats Loci clears them."

// clearing returns an edit that clears results, with the names of the tools whose results stay.
func clearing(fields map[string]any, tools []string, stays func(tool string) bool) map[string]any {
	fields["type"] = "clear_tool_uses_20250919"
	if except := named(tools, stays); len(except) > 0 {
		fields["exclude_tools"] = except
	}
	return fields
}

// named returns the tools that satisfy a condition.
func named(tools []string, is func(tool string) bool) (all []string) {
	for _, tool := range tools {
		if is(tool) {
			all = append(all, tool)
		}
	}
	return all
}

func ofUses(n int) map[string]any   { return map[string]any{"type": "tool_uses", "value": n} }
func ofTokens(n int) map[string]any { return map[string]any{"type": "input_tokens", "value": n} }
