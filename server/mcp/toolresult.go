package mcp

import (
	"encoding/json"

	"github.com/loci-memory/loci/files"
)

// ToolResult is the structured result of a tool.
type ToolResult struct {
	Text  string         `json:"text"`
	Files []files.Opened `json:"files,omitempty"`
}

// outputSchema is the JSON schema of a ToolResult.
var outputSchema = json.RawMessage(`{"type":"object","required":["text"],"properties":{
	"text":{"type":"string","description":"What the tool says, as its text."},
	"files":{"type":"array","description":"The files that it opened.","items":{"type":"object"}}}}`)
