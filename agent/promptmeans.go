package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Definition is a tool as a model gets it. Schema is an object of name, description and parameters.
type Definition struct {
	Name   string
	Schema json.RawMessage
}

// Definitions returns the tools for an agent's model.
type Definitions func(a Agent, hasFolder bool) []Definition

// systemPrompt holds the parts of a compiled system prompt. The part that changes most often comes last, so that a
// provider's cache of the beginning stays valid.
type systemPrompt struct {
	system      string // the base instructions
	blocks      string // empty if no block is attached
	rules       string // empty if no tool has a rule
	directories string // empty if no folder is attached
	metadata    string
	working     string // empty if the conversation's working memory has no entries

	openChars int // characters of all views of open files
}

// parts returns the texts that together are the prompt.
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

// promptMeans are the limits and the tools that a system prompt mentions.
type promptMeans struct {
	limits files.Limits // of views of open files
	tools  []Definition

	hasFolder    bool // a folder is attached to the agent
	withoutFiles bool // leave out the texts of open files
}

// toolRule is a rule for the use of a tool, as Letta's clients store it.
type toolRule struct {
	Type     string   `json:"type"`
	Tool     string   `json:"tool_name"`
	Children []string `json:"children"`
	Max      int      `json:"max_count_limit"`
}

// attribute returns a name as an attribute's value, with a backslash before each quote.
func attribute(name string) string { return strings.ReplaceAll(frame.Neutralize(name), `"`, `\"`) }

// toolset returns tools as a recall.Toolset.
func toolset(tools []Definition) recall.Toolset {
	return func(name string) bool { return hasTool(tools, name) }
}

func hasTool(tools []Definition, name string) bool {
	return slices.ContainsFunc(tools, func(d Definition) bool { return d.Name == name })
}
