package agent

import "slices"

// Letta's types of agents that differ from DefaultType here. Agents of the others run as DefaultType does.
const (
	// DefaultType is the type of an agent without a given type, as in Letta.
	DefaultType = "letta_v1_agent"

	memGPT   = "memgpt_agent"
	memGPTv2 = "memgpt_v2_agent"
	react    = "react_agent"
	workflow = "workflow_agent"
	// Sleeptime is the type of agents that keep memory in order, and speak with nobody.
	Sleeptime = "sleeptime_agent"
)

// Types are Letta's types of agents.
var Types = []string{memGPT, memGPTv2, DefaultType, react, workflow, "split_thread_agent", Sleeptime,
	"voice_convo_agent", "voice_sleeptime_agent"}

// MemoryFinishEdits is the tool with which agents of the type Sleeptime end their turn.
const MemoryFinishEdits = "memory_finish_edits"

// lettaType says what agents of a type of Letta's have. Expand is Loci's own; it comes with conversation_search,
// because Loci shows long results in part.
type lettaType struct {
	base   []string // the tools besides those for files
	about  string   // a sentence of the default instructions
	speaks bool     // only what they say with SendMessage reaches their user
}

// lettaTypes are Letta's types, with the base tools that Letta 0.16 gives their agents (calculate_base_tools).
var lettaTypes = map[string]lettaType{
	DefaultType: {base: []string{"conversation_search", "expand", "memory_insert", "memory_replace"}},
	memGPT: {base: []string{"conversation_search", "expand", "core_memory_append", "core_memory_replace",
		"memory_apply_patch", "memory", SendMessage}, about: aboutSpeaking, speaks: true},
	memGPTv2: {base: []string{"conversation_search", "expand", "memory_insert", "memory_replace", SendMessage},
		about: aboutSpeaking, speaks: true},
	react: {about: "You work with your tools, one step after the other: think about what is known and what is missing, " +
		"call the tool that brings you further, and read its result. When the task is done, end with a text that says " +
		"what came of it."},
	workflow: {about: "You carry out a task with your tools, one after the other, as your instructions say. You see " +
		"nothing of earlier requests: each has all that you need. When the task is done, end with a text that says what " +
		"came of it."},
	Sleeptime: {base: []string{"memory_insert", "memory_replace", "memory_rethink", MemoryFinishEdits},
		about: "You keep the core memory of an agent that talks with a user. You do not talk with the user: you get what " +
			"was said, and write into the blocks what must be known later, where it belongs, without doubles, with dates in " +
			"place of words like today. Leave out what does not matter. When the blocks are in order, or if nothing needs to " +
			"change, call memory_finish_edits."},
}

// aboutSpeaking tells the model of an agent that speaks with SendMessage how its answers are read.
const aboutSpeaking = "What you write beside a call are your own thoughts, which nobody else sees. To answer the " +
	"user, call send_message, which ends your turn. Call a tool in every answer."

func typeOf(name string) lettaType {
	if t, ok := lettaTypes[name]; ok {
		return t
	}
	return lettaTypes[DefaultType]
}

// lettaFiles are the tools that Letta gives an agent with a folder.
var lettaFiles = []string{"open_files", "grep_files", "semantic_search_files"}

// LettaTools are Letta's default tools of an agent of a type, by their names.
func LettaTools(agentType string) []string { return slices.Concat(lettaFiles, typeOf(agentType).base) }

// IsLabel reports whether agents of a type run as those of DefaultType do.
func IsLabel(agentType string) bool {
	_, differs := lettaTypes[agentType]
	return agentType != "" && !differs
}

// SpeaksByTool reports whether agents of a type speak with SendMessage.
func SpeaksByTool(agentType string) bool { return typeOf(agentType).speaks }

// ClearsAlways reports whether agents of a type see nothing of earlier requests, whatever their settings say.
func ClearsAlways(agentType string) bool { return agentType == workflow }

// Clears reports whether the agent's model sees nothing of earlier requests.
func (a Agent) Clears() bool {
	return a.Settings.MessageBufferAutoclear != nil && *a.Settings.MessageBufferAutoclear
}
