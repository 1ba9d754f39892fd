package chat

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// sealedBlocks are types of blocks that are kept exactly as Anthropic returned them: output of Anthropic's own tools,
// and compacted beginnings of conversations.
var sealedBlocks = []string{"server_tool_use", "web_search_tool_result", "web_fetch_tool_result",
	"code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
	"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result", "container_upload", "compaction"}

func readToolUse(p Object) recall.Part {
	c := recall.Part{Type: recall.ToolCall, CallID: p.Needed("id"), Name: p.Called("name"), Input: p.Arguments("input")}
	c.Extra = p.extra(c, recall.AnthropicAPI, "caller")
	return c
}

// readToolResult reads a tool's result. Without content it is empty.
func readToolResult(p Object) recall.Part {
	r := recall.Part{Type: recall.ToolReturn, CallID: p.Needed("tool_use_id"), IsError: p.Flag("is_error")}
	if p.Has("content") {
		p.Result("content", &r)
	}
	return r
}

// readThinking reads a thought. Mistral sends thoughts as lists of texts.
func readThinking(p Object) recall.Part {
	if p.Has("thinking") && p.fields["thinking"][0] == '[' {
		thought := recall.Part{}
		p.Result("thinking", &thought)
		return recall.Part{Type: recall.Reasoning, Text: thought.Text, Native: true}
	}
	return recall.Part{Type: recall.Reasoning, Text: p.Given("thinking"), Native: true, Signature: p.Text("signature")}
}

func readSealedBlock(p Object) recall.Part { return SealedBlock(p.raw) }

// SealedBlock returns a part that keeps an Anthropic block exactly as received.
func SealedBlock(raw json.RawMessage) recall.Part {
	return recall.Part{Type: recall.AnthropicBlock, Item: string(compact(raw))}
}

// BlockExtra returns the named fields of an Anthropic block as Extra for its part; empty if the block has none of them.
func BlockExtra(raw json.RawMessage, names ...string) string {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &fields) // anything but an object has no fields
	return NewObject(fields, nil).extra(recall.Part{}, recall.AnthropicAPI, names...)
}
