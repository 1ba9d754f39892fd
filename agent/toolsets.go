package agent

import "slices"

// EveryTool in a list of tools stands for every tool, including tools that later versions add.
const EveryTool = "all"

// DefaultTools in a list of tools stands for the tools of an agent whose tools nobody chose. They follow from its
// window, and from the kind of clients that it is made for.
const DefaultTools = "default"

// The kinds of clients that an agent is made for.
const (
	ForLoci  = "loci"
	ForLetta = "letta" // the agent was imported, or a client of Letta's created it
)

// namedTools are built-in tools that an agent has only if its list of tools names them.
var namedTools = []string{"memory_files", "search_memory", "ask_session", "request_erasure", QueryResult, "query_log",
	"start_subagent", SendMessage, MemoryFinishEdits}

// SendMessage is the tool by which agents of Letta's older types speak. What else they write is for themselves.
const SendMessage = "send_message"

// Speaks reports whether the agent speaks with SendMessage.
func (a Agent) Speaks() bool { return a.HasTool(SendMessage) }

// The default tools of an agent that is not made for Letta. In a small window search_memory finds what grep_files
// would.
var (
	smallDefault = []string{"open_files", "expand", "search_memory", "memory", "archival_memory_insert"}
	roomyDefault = append([]string{"grep_files"}, smallDefault...)
)

// smallWindow is the largest window, in tokens, in which an agent has the smallest default tools.
const smallWindow = 4_096

// MadeFor returns the kind of clients that the agent is made for.
func (a Agent) MadeFor() string {
	if a.Settings.MadeFor == ForLetta {
		return ForLetta
	}
	return ForLoci
}

// HasTool reports whether an agent has a built-in tool, or would have it if a folder were attached. It has load_skill
// while a folder of skills is attached; a sub-agent only if it was granted.
func (a Agent) HasTool(name string) bool {
	t := a.Settings.Tools
	every := t == nil || slices.Contains(t, EveryTool)
	if name == LoadSkill {
		return a.HasSkills && (a.Depth == 0 || every || slices.Contains(t, name))
	}
	return every && !slices.Contains(namedTools, name) || slices.Contains(t, name) ||
		slices.Contains(t, DefaultTools) && slices.Contains(a.defaultTools(), name)
}

func (a Agent) defaultTools() []string {
	switch {
	case a.MadeFor() == ForLetta:
		return LettaTools(a.Type)
	case a.AssumedWindow() <= smallWindow:
		return smallDefault
	}
	return roomyDefault
}

// ChoseTools reports whether somebody chose the agent's tools.
func (a Agent) ChoseTools() bool {
	return a.Settings.Tools != nil && !slices.Equal(a.Settings.Tools, []string{DefaultTools})
}
