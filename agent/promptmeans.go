package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Definition is a tool as a model is given it. Schema is an object of name, description and parameters.
type Definition struct {
	Name   string
	Schema json.RawMessage
}

// Definitions returns the tools that an agent's model is given.
type Definitions func(a Agent, hasFolder bool) []Definition

// systemPrompt is the compiled system prompt in its parts. The part that changes most often comes last, so that a
// provider's cache of the beginning stays valid.
type systemPrompt struct {
	system      string // the base instructions
	blocks      string // empty if no block is attached
	rules       string // empty if no tool has one
	directories string // empty if no folder is attached
	metadata    string
	working     string // empty if the conversation's record has no entries

	openChars int // characters of the views of open files
}

// parts returns texts whose concatenation is the prompt.
func (p systemPrompt) parts() []string {
	var parts []string
	for _, part := range []string{p.system, p.blocks, p.rules, p.directories, p.metadata, p.working} {
		if part != "" && len(parts) > 0 {
			part = "\n\n" + part
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func (p systemPrompt) String() string { return strings.Join(p.parts(), "") }

// promptMeans are the limits and the tools that a system prompt names.
type promptMeans struct {
	limits files.Limits // of the views of open files
	tools  []Definition

	hasFolder    bool // whether any is attached to the agent
	withoutFiles bool // leaves the texts of open files out
}

// toolRule is a rule for the use of a tool, as Letta's clients store it.
type toolRule struct {
	Type     string   `json:"type"`
	Tool     string   `json:"tool_name"`
	Children []string `json:"children"`
	Max      int      `json:"max_count_limit"`
}

// attribute returns a name as the value of an attribute, with a backslash before each quote.
func attribute(name string) string { return strings.ReplaceAll(frame.Neutralize(name), `"`, `\"`) }

// toolset returns tools as a recall.Toolset.
func toolset(tools []Definition) recall.Toolset {
	return func(name string) bool { return hasTool(tools, name) }
}

func hasTool(tools []Definition, name string) bool {
	return slices.ContainsFunc(tools, func(d Definition) bool { return d.Name == name })
}
