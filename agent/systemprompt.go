package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// SystemPrompt compiles an agent's system prompt in Letta's layout. The same state gives the same bytes.
func (s *Store) SystemPrompt(ctx context.Context, org db.Org, a Agent) (string, error) {
	empty := recall.Conversation{IsDefault: true, ContextView: recall.ContextView{FirstVisible: 1}}
	return s.compileNow(ctx, org, a, empty)
}

// compileNow compiles a conversation's system prompt, in Letta's layout, from what the agent has now.
func (s *Store) compileNow(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (string, error) {
	has, err := s.Files.HasFolder(ctx, org, a.ID)
	if err != nil {
		return "", err
	}
	p, err := s.compile(ctx, org, a, c, promptMeans{limits: a.Limits(), tools: s.definitions(a, has), hasFolder: has})
	return p.String(), err
}

// compile compiles the parts of a conversation's prompt besides its messages.
func (s *Store) compile(ctx context.Context, org db.Org, a Agent, c recall.Conversation, m promptMeans) (
	systemPrompt, error) {
	if user := a.Users(c).User(); user != 0 {
		ctx = db.WithUser(ctx, user)
	}
	directories, err := s.directories(ctx, org, a.Folders(c), m)
	if err != nil {
		return systemPrompt{}, err
	}
	core, err := s.coreMemory(ctx, org, a, c, m.tools)
	if err != nil {
		return systemPrompt{}, err
	}
	core.bounds = m.bounds
	counts, err := s.counts(ctx, org, a, c, m.tools)
	if err != nil {
		return systemPrompt{}, err
	}
	p := systemPrompt{system: a.Instructions(m.tools), rules: renderRules(a.Settings.ToolRules),
		about:       fmt.Sprintf(metadataOf+"\n- %s\n</memory_metadata>", a.ID, frame.Note),
		directories: renderDirectories(directories, m), counts: counts, core: core, files: directories,
		limits: m.limits}
	p.blocks, p.working = core.render(0)
	if p.skills, p.preloaded, err = s.compileSkills(ctx, org, a, a.Folders(c), m); err != nil {
		return p, err
	}
	for _, d := range directories {
		for _, f := range d.Files {
			p.openChars += utf8.RuneCountInString(f.Shown)
		}
	}
	return p, nil
}

// metadataOf begins the section of the system prompt that names the agent.
const metadataOf = "<memory_metadata>\n- AGENT_ID: %s"

// IsSystemPrompt reports whether a text is the agent's instructions, or its system prompt as compiled at any time.
func (a Agent) IsSystemPrompt(text string) bool {
	return strings.Contains(text, fmt.Sprintf(metadataOf, a.ID)+"\n") || a.System != "" && text == a.System
}

// counts writes the lines that name the conversation and count what the model does not see. They count only hidden
// messages, because a count of all messages would change the prompt with every turn.
func (s *Store) counts(ctx context.Context, org db.Org, a Agent, c recall.Conversation, tools []Definition) (string,
	error) {
	total, err := s.Recall.CountSaid(ctx, org, a.ID, a.Users(c))
	if err != nil {
		return "", err
	}
	passages, err := s.Archival.CountPassages(ctx, org, archival.Reach{AgentID: a.ID, Users: a.Users(c)})
	if err != nil {
		return "", err
	}
	name := c.ID
	if c.IsDefault {
		name = recall.DefaultConversation
	}
	text := fmt.Sprintf("- CONVERSATION_ID: %s\n- System prompt last recompiled: %s\n", name,
		a.SystemChangedAt.In(a.Zone()).Format(recall.EnvelopeTime))
	hidden, between := max(total-visible(c), 0), ""
	if a.MadeFor() == ForLetta {
		between = " between you and the user"
	}
	if hidden > 0 || between != "" { // Letta counts none, too
		text += fmt.Sprintf("- %d previous messages%s are stored in recall memory%s\n", hidden, between,
			toolset(tools).Hint("conversation_search", " (use conversation_search to find them)"))
	}
	if passages > 0 {
		text += fmt.Sprintf("- %d passages are stored in archival memory%s\n", passages,
			toolset(tools).Hint("archival_memory_search", " (use archival_memory_search to find them)"))
	}
	return text, nil
}

// ruleTexts maps a rule's type → function that writes the rule for the model, in Letta's words. Rules of other types
// are not shown.
var ruleTexts = map[string]func(toolRule) string{
	"constrain_child_tools": func(r toolRule) string {
		return fmt.Sprintf("After using %s, you must use one of these tools: %s", r.Tool, strings.Join(r.Children, ", "))
	},
	"parent_last_tool": func(r toolRule) string {
		return fmt.Sprintf("%s can only be used after %s", strings.Join(r.Children, ", "), r.Tool)
	},
	"conditional": func(r toolRule) string {
		return r.Tool + " will determine which tool to use next based on its output"
	},
	"exit_loop":            func(r toolRule) string { return r.Tool + " ends your response (yields control) when called" },
	"continue_loop":        func(r toolRule) string { return r.Tool + " requires continuing your response when called" },
	"required_before_exit": func(r toolRule) string { return r.Tool + " must be called before ending the conversation" },
	"max_count_per_step": func(r toolRule) string {
		return fmt.Sprintf("%s: at most %d use(s) per response", r.Tool, r.Max)
	},
}

const rulesIntroduction = `The following constraints define rules for tool usage and guide desired behavior. These ` +
	`rules must be followed to ensure proper tool execution and workflow. A single response may ` +
	`contain multiple tool calls.`

// renderRules writes the section of the prompt with the tool rules; empty if there is none to show. A rule's own
// template is ignored.
func renderRules(stored json.RawMessage) string {
	var rules []json.RawMessage
	if json.Unmarshal(stored, &rules) != nil { // absent, or not a list; clients may store anything
		return ""
	}
	var b strings.Builder
	for _, raw := range rules {
		var r toolRule
		if json.Unmarshal(raw, &r) != nil || ruleTexts[r.Type] == nil || r.Tool == "" {
			continue
		}
		fmt.Fprintf(&b, "<tool_rule>\n%s\n</tool_rule>\n", frame.Neutralize(ruleTexts[r.Type](r)))
	}
	if b.Len() == 0 {
		return ""
	}
	return "<tool_usage_rules>\n<description>" + rulesIntroduction + "</description>\n\n" + b.String() +
		"</tool_usage_rules>"
}

// toolGroup holds the sentences in the default instructions about the tools of one memory.
type toolGroup struct {
	about string
	tools []toolUse
	after string // a last sentence, if the agent has the first of the tools
}

type toolUse struct{ name, use string }

// defaultOpening begins the default instructions.
const defaultOpening = "You are an agent with a memory of your own."

var toolGroups = []toolGroup{
	{"Your documents are listed at the end of each prompt, with the views that you have open", []toolUse{
		{"open_files", "open_files shows a document there"},
		{"grep_files", "grep_files finds exact text"},
		{"semantic_search_files", "semantic_search_files finds what fits a question"},
		{"list_files", "list_files names all documents"},
		{"close_files", "close_files makes room"},
	}, "Only so many documents stay open: the one you used least recently is closed first."},
	{"Core memory is short blocks of text that you always see; keep what matters there current", []toolUse{
		{"memory_insert", "memory_insert adds lines"},
		{"memory_replace", "memory_replace changes a passage"},
		{"memory_rethink", "memory_rethink rewrites a block"},
		{"memory_apply_patch", "memory_apply_patch changes several places at once"},
		{"memory", "the tool memory creates, changes and deletes blocks, and files below /memories"},
		{"core_memory_append", "core_memory_append adds a line"},
		{"core_memory_replace", "core_memory_replace changes a text wherever a block has it"},
	}, ""},
	{"Working memory is the state of your task, which you always see", []toolUse{
		{"update_working_memory", "update_working_memory keeps it current"},
	}, ""},
	{"Memory files outlast every conversation", []toolUse{
		{"memory_files", "memory_files shows and changes what is in /memories; look there first, and write what must last"},
	}, ""},
	{"Archival memory keeps facts for good, out of view", []toolUse{
		{"archival_memory_insert", "archival_memory_insert stores one"},
		{"archival_memory_search", "archival_memory_search finds them"},
		{"archival_memory_update", "archival_memory_update corrects one"},
		{"archival_memory_delete", "archival_memory_delete removes one"},
	}, ""},
	{"All that you remember can be searched at once", []toolUse{
		{"search_memory", "search_memory says where something stands"},
	}, ""},
	{"What must be forgotten can be erased for good", []toolUse{
		{"request_erasure", "request_erasure asks an operator for it"},
	}, ""},
	{"Your other conversations keep what was said in them", []toolUse{
		{"ask_session", "ask_session asks one of them a question"},
	}, ""},
	{"Your edits of core memory have an end", []toolUse{
		{MemoryFinishEdits, "memory_finish_edits says that the blocks are in order"},
	}, ""},
	{"Your user sees only what you send", []toolUse{
		{SendMessage, "send_message says something to the user"},
	}, ""},
	{"Sub-agents do a piece of work in conversations of their own", []toolUse{
		{"start_subagent", "start_subagent hands one its task, and brings what it returns"},
	}, ""},
	{"Old messages leave your view, and none is lost", []toolUse{
		{"conversation_search", "conversation_search finds them"},
		{"expand", "expand reads a range of them, or a long text, in full"},
	}, ""},
	{"Long results of tools are shown in part, and kept whole", []toolUse{
		{"query_result", "query_result runs a jq expression or a pattern over them"},
	}, ""},
	{"Your log can be computed on", []toolUse{
		{"query_log", "query_log runs a jq expression over a range of it"},
	}, ""},
}

// Instructions returns an agent's base instructions: the operator's, or else a text about the tools that it has.
func (a Agent) Instructions(tools []Definition) string {
	if a.System != "" {
		return a.System
	}
	parts := []string{defaultOpening}
	if about := typeOf(a.Type).about; about != "" && a.MadeFor() == ForLetta {
		parts = append(parts, about)
	}
	for _, g := range toolGroups {
		var uses []string
		for _, t := range g.tools {
			if hasTool(tools, t.name) {
				uses = append(uses, t.use)
			}
		}
		if len(uses) == 0 {
			continue
		}
		parts = append(parts, g.about+": "+strings.Join(uses, ", ")+".")
		if g.after != "" && hasTool(tools, g.tools[0].name) {
			parts = append(parts, g.after)
		}
	}
	return strings.Join(parts, " ")
}

// withMust adds the tool that a model must call, if tools lack it.
func (s *Store) withMust(tools []Definition, name string) []Definition {
	if name == "" || hasTool(tools, name) || s.Tools == nil {
		return tools
	}
	return append(tools, s.Tools(Agent{Settings: Settings{Tools: []string{name}}}, false)...)
}

// Definitions returns the tools of an agent.
func (s *Store) Definitions(ctx context.Context, org db.Org, a Agent) ([]Definition, error) {
	has, err := s.Files.HasFolder(ctx, org, a.ID)
	return s.definitions(a, has), err
}

func (s *Store) definitions(a Agent, hasFolder bool) []Definition {
	if s.Tools == nil {
		return nil
	}
	return s.Tools(a, hasFolder)
}
