package tool

import (
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// Hints say how a tool behaves. Programs use them to show tools to people, or to ask people before a call.
type Hints struct {
	Title       string
	Group       string // the name of the group of tools that the tool belongs to
	ReadOnly    bool   // the tool changes nothing
	Destructive bool   // the tool may change or remove stored data, not only add to it
	Idempotent  bool   // a second call with the same arguments changes nothing more
}

var hints = map[string]Hints{
	"open_files":             {Title: "Open files", Group: "files", Idempotent: true},
	"grep_files":             {Title: "Search files by pattern", Group: "files"},
	"semantic_search_files":  {Title: "Search files by meaning", Group: "files"},
	"list_files":             {Title: "List files", Group: "files"},
	"close_files":            {Title: "Close files", Group: "files", Idempotent: true},
	agent.LoadSkill:          {Title: "Load a skill", Group: "files"},
	"conversation_search":    {Title: "Search conversations", Group: "recall"},
	"expand":                 {Title: "Read a long text", Group: "recall"},
	agent.QueryResult:        {Title: "Query a stored result", Group: "recall"},
	queryLogTool:             {Title: "Query the log", Group: "recall"},
	"search_memory":          {Title: "Search all memories", Group: "recall"},
	"ask_session":            {Title: "Ask an earlier session", Group: "recall"},
	"core_memory_append":     {Title: "Append to a memory block", Group: "blocks"},
	"core_memory_replace":    {Title: "Replace text of a memory block", Group: "blocks", Destructive: true},
	"memory_insert":          {Title: "Insert into a memory block", Group: "blocks"},
	"memory_replace":         {Title: "Replace text of a memory block", Group: "blocks", Destructive: true},
	"memory_rethink":         {Title: "Rewrite a memory block", Group: "blocks", Destructive: true, Idempotent: true},
	"memory_apply_patch":     {Title: "Patch memory blocks", Group: "blocks", Destructive: true},
	"memory":                 {Title: "Edit memory blocks", Group: "blocks", Destructive: true},
	UpdateWorkingMemory:      {Title: "Update working memory", Group: "working_memory", Destructive: true},
	memoryFilesTool:          {Title: "Work on memory files", Group: "memory_files", Destructive: true},
	"archival_memory_insert": {Title: "Store a passage", Group: "archival", Destructive: true}, // may supersede a passage
	"archival_memory_search": {Title: "Search passages", Group: "archival"},
	"archival_memory_update": {Title: "Change a passage", Group: "archival", Destructive: true, Idempotent: true},
	"archival_memory_delete": {Title: "Delete a passage", Group: "archival", Destructive: true, Idempotent: true},
	agent.SendMessage:        {Title: "Send a message", Group: "letta"},
	agent.MemoryFinishEdits:  {Title: "End the edits of memory", Group: "letta", Idempotent: true},
	StartSubagent:            {Title: "Start a sub-agent", Group: "subagents"},
	"request_erasure":        {Title: "Ask for an erasure", Group: "erasure", Destructive: true},
}

// Named returns the name of the built-in tool that a model means: the name itself, or the only one that differs from it
// by case, signs, a plural, and what some models write around a name, as in functions.memory, mcp__loci__memory and
// memory(). If there is no such tool, it returns the name itself.
func Named(called string) string {
	if _, ok := hints[called]; ok {
		return called
	}
	own := strings.TrimSuffix(called, "()")
	own = own[strings.LastIndexByte(own, '.')+1:]
	if i := strings.LastIndex(own, "__"); i >= 0 {
		own = own[i+len("__"):]
	}
	given := singular(bare(own))
	for _, name := range slices.Sorted(maps.Keys(hints)) {
		if singular(bare(name)) == given {
			return name
		}
	}
	return called
}

// Hints returns the hints of a built-in tool.
func (t Tool) Hints() Hints {
	h := hints[t.Name]
	h.ReadOnly = t.reads
	return h
}

// Chosen returns the names of the tools that words select. Each word is the name of a tool or of a group of tools. more
// lists tools that are not built in: it maps their names to their groups. ErrInvalid for any other word.
func (s *Set) Chosen(words []string, more map[string]string) ([]string, error) {
	all := s.names()
	groupOf := maps.Clone(more)
	if groupOf == nil {
		groupOf = map[string]string{}
	}
	for _, name := range all {
		groupOf[name] = hints[name].Group
	}
	all = append(all, slices.Sorted(maps.Keys(more))...)
	var chosen []string
	for _, word := range words {
		found := len(chosen)
		for _, name := range all {
			if name == word || groupOf[name] == word {
				chosen = append(chosen, name)
			}
		}
		if len(chosen) == found {
			return nil, db.Invalid("there is no tool or group of tools '%s'; the groups are %s, and the tools %s", echo(word),
				joined(slices.Compact(slices.Sorted(maps.Values(groupOf)))), joined(all))
		}
	}
	return chosen, nil
}
