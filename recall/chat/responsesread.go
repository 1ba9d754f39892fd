package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// responsesItems maps types of items without a role, in OpenAI's Responses API, to their readers.
var responsesItems = map[string]func(Object) recall.Draft{
	"function_call":           readFunctionCall,
	"custom_tool_call":        readFunctionCall,
	"function_call_output":    readFunctionOutput,
	"custom_tool_call_output": readFunctionOutput,
	"reasoning":               readReasoningItem,
}

// sealedItems are types of items that are kept exactly as OpenAI returned them: output of OpenAI's own tools, and
// compacted beginnings of conversations.
var sealedItems = []string{"compaction", "compaction_summary", "web_search_call", "file_search_call",
	"code_interpreter_call", "image_generation_call", "computer_call", "mcp_call", "mcp_list_tools",
	"mcp_approval_request", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call"}

// refusedItems maps types of items that are not read to the reason.
var refusedItems = map[string]string{
	"item_reference": "what an id of OpenAI's names is not known here; send the item itself",
}

// IsItem reports whether an object is an item of OpenAI's Responses API without a role.
func IsItem(m Object) bool {
	kind := m.kind()
	return !m.Has("role") && (responsesItems[kind] != nil || refusedItems[kind] != "" ||
		slices.Contains(sealedItems, kind))
}

// IsAnswerItem reports whether an object is an item of the Responses API that the model wrote. Consecutive items of
// this kind are one message of the log.
func IsAnswerItem(m Object) bool {
	if IsItem(m) {
		return !strings.HasSuffix(m.kind(), "_output")
	}
	return m.kind() == "message" && string(m.fields["role"]) == `"assistant"` && m.hasPart("output_text", "refusal")
}

// hasPart reports whether the first part of the content has one of these types.
func (i Object) hasPart(kinds ...string) bool {
	var parts []struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(i.fields["content"], &parts) == nil && len(parts) > 0 && slices.Contains(kinds, parts[0].Type)
}

// kind returns an object's type; empty if that is not a text.
func (i Object) kind() (kind string) {
	_ = json.Unmarshal(i.fields["type"], &kind) // readers report the error
	return kind
}

// ReadItem reads an item. IsItem must be true for it.
func ReadItem(m Object) recall.Draft {
	kind := m.kind()
	if why := refusedItems[kind]; why != "" {
		m.Refuse("type", why)
		return recall.Draft{}
	}
	if read := responsesItems[kind]; read != nil {
		return read(m)
	}
	return answered(recall.Part{Type: recall.ResponsesItem, Item: string(compact(m.raw))})
}

func answered(parts ...recall.Part) recall.Draft {
	return recall.Draft{Role: recall.Assistant, Content: parts}
}

func readFunctionCall(m Object) recall.Draft {
	p := recall.Part{Type: recall.ToolCall, CallID: m.Needed("call_id"), Name: m.Called("name")}
	if m.kind() == "custom_tool_call" {
		p.Kind, p.Input = recall.CustomCall, m.Given("input")
	} else {
		p.Input = m.Arguments("arguments")
	}
	p.Extra = m.extra(p, recall.ResponsesAPI, "namespace")
	return answered(p)
}

func readFunctionOutput(m Object) recall.Draft {
	p := recall.Part{Type: recall.ToolReturn, CallID: m.Needed("call_id")}
	m.Result("output", &p)
	return recall.Draft{Role: recall.Tool, Content: []recall.Part{p}}
}

// readReasoningItem reads a reasoning. Its texts are searched; the item is kept exactly as OpenAI returned it.
func readReasoningItem(m Object) recall.Draft {
	var texts []string
	for _, name := range []string{"summary", "content"} {
		for _, s := range m.Items(name, "a list of texts") {
			texts = append(texts, s.Given("text"))
		}
	}
	return answered(recall.Part{Type: recall.SummarizedReasoning, CallID: m.Text("id"), Text: strings.Join(texts, "\n"),
		Data: m.Text("encrypted_content"), Item: string(compact(m.raw))})
}
