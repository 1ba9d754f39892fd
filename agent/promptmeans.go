package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
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

// systemPrompt holds the parts of a compiled prompt besides its messages. The request to a model begins with those that
// only a change of the agent changes, and ends with the state, which changes by itself. Thus a provider's cache keeps
// what stands between them.
type systemPrompt struct {
	system string // the base instructions
	blocks string // empty if no block is attached
	rules  string // empty if no tool has a rule
	skills string // empty if the agent has no skill, or lacks the tool that loads one
	about  string // names the agent, and says how texts are shown

	directories string // empty if no folder is attached
	counts      string // of what the model does not see
	working     string // empty if the conversation's working memory has no entries

	preloaded []recall.Message // skills that stand before the conversation's messages

	limits  files.Limits // of views of open files
	asLetta bool         // the request has all parts in its system prompt

	openChars int        // characters of all views of open files
	core      coreMemory // that blocks and working show
	files     []files.Directory
}

// joined joins those texts that are not empty with empty lines between them.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
}

// parts returns the texts that together are the system prompt of a request.
func (p systemPrompt) parts() []string {
	if p.asLetta {
		return []string{p.String()}
	}
	var parts []string
	for _, part := range []string{p.system, p.blocks, p.rules, p.skills, p.about} {
		if part != "" && len(parts) > 0 {
			part = "\n\n" + part
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// beginning returns the system prompt of a request.
func (p systemPrompt) beginning() string { return strings.Join(p.parts(), "") }

// state returns the item at the end of a request.
func (p systemPrompt) state() string {
	return frame.StateOf(joined(p.directories, p.working, p.wrappedCounts()))
}

// wrappedCounts returns the counts as a section of the state.
func (p systemPrompt) wrappedCounts() string {
	if p.counts == "" {
		return ""
	}
	return "<memory_counts>\n" + p.counts + "</memory_counts>"
}

// metadata returns the section of Letta's layout that counts hidden messages, passages and files.
func (p systemPrompt) metadata() string {
	begin, end := "", ""
	if at := strings.Index(p.about, "\n- "+frame.Note); at >= 0 {
		begin, end = p.about[:at+1], p.about[at+1:]
	}
	return begin + p.counts + end
}

// String returns all parts as one system prompt in Letta's layout.
func (p systemPrompt) String() string {
	return joined(p.system, p.blocks, p.rules, p.skills, closedInFull(p.directories, p.limits), p.metadata(), p.working)
}

// promptMeans are the limits and the tools that a system prompt mentions.
type promptMeans struct {
	limits files.Limits // of views of open files
	tools  []Definition

	hasFolder    bool // a folder is attached to the agent
	withoutFiles bool // leave out the texts of open files

	bounds *policy.Bootstrap // of blocks; nil: none

	window int              // in tokens
	count  func(string) int // counts tokens; nil: as the agent's model does, for the agent's window
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

// namesOf returns the names of tools.
func namesOf(tools []Definition) (names []string) {
	for _, d := range tools {
		names = append(names, d.Name)
	}
	return names
}

// RecallFor is a message for which the memories are searched.
type RecallFor struct {
	Org          db.Org
	Agent        Agent
	Conversation recall.Conversation
	Text         string // of the message
	Shown        string // what the model sees anyway
	Settings     RecallSettings
}
