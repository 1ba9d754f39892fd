package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// Set holds the tools of this server.
type Set struct {
	// RecallWithin bounds a search for what is recalled unasked; 0 means 300 ms.
	RecallWithin time.Duration

	Observe   func(Called) // gets each call after its end; may be nil
	Subagents Subagents

	memories Memories
	tools    []Tool
}

// Called describes a tool call that has ended.
type Called struct {
	Name    string
	Refused bool // the tool refused, for a reason that the model can act on
	Failed  bool // the server failed
	Took    time.Duration
}

// New returns the tools that work on m, in the order in which a model should read them.
func New(m Memories) *Set {
	return &Set{memories: m, tools: []Tool{
		withFolder(define("open_files", Memories.openFiles)),
		withFolder(reading(define("grep_files", Memories.grepFiles))),
		withFolder(reading(define("semantic_search_files", Memories.searchFiles))),
		withFolder(reading(define("list_files", Memories.listFiles))),
		withFolder(define("close_files", Memories.closeFiles)),
		withSkills(reading(define(agent.LoadSkill, Memories.loadSkill))),
		reading(define("conversation_search", Memories.searchConversations)),
		reading(define("expand", Memories.expand)),
		reading(define(agent.QueryResult, Memories.queryResult)),
		reading(define(queryLogTool, Memories.queryLog)),
		reading(define("search_memory", Memories.searchMemory)),
		reading(define("ask_session", Memories.askSession)),
		growing(define("core_memory_append", Memories.coreMemoryAppend)),
		growing(define("core_memory_replace", Memories.coreMemoryReplace)),
		growing(define("memory_insert", Memories.memoryInsert)),
		growing(define("memory_replace", Memories.memoryReplace)),
		growing(define("memory_rethink", Memories.memoryRethink)),
		growing(define("memory_apply_patch", Memories.memoryApplyPatch)),
		growing(define("memory", Memories.memory)),
		growing(define(UpdateWorkingMemory, Memories.updateWorkingMemory)),
		growing(define(memoryFilesTool, Memories.memoryFiles)),
		lookingAhead(define("archival_memory_insert", Memories.archivalInsert), Memories.archivalLookalikes),
		reading(define("archival_memory_search", Memories.archivalSearch)),
		define("archival_memory_update", Memories.archivalUpdate),
		define("archival_memory_delete", Memories.archivalDelete),
		define("request_erasure", Memories.requestErasure),
		inOwnTransaction(define(StartSubagent, Memories.startSubagent)),
		define(agent.SendMessage, Memories.sendMessage),
		define(agent.MemoryFinishEdits, Memories.finishEdits),
	}}
}

// Tools returns every tool.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Of returns the tools of an agent. Their descriptions state the bounds in force for it. The tools of the agent's own
// program come last.
func (s *Set) Of(a agent.Agent, hasFolder bool) []Tool {
	return s.OfCaller(Caller{Agent: a}, hasFolder)
}

// OfCaller is Of for a caller, who may have other bounds than the agent's own model.
func (s *Set) OfCaller(c Caller, hasFolder bool) (all []Tool) {
	a := c.Agent
	for _, t := range s.tools {
		if a.HasTool(t.Name) && (hasFolder || !t.NeedsFolder) {
			all = append(all, t.boundedFor(c))
		}
	}
	for _, t := range a.Attached {
		if !s.Has(t.Name) || !a.HasTool(t.Name) { // a later version may add a tool with that name
			all = append(all, Tool{ID: t.ID, Name: t.Name, Schema: t.Schema, ByClient: true})
		}
	}
	return all
}

// Definitions returns an agent's tools in the form that its model receives.
func (s *Set) Definitions(a agent.Agent, hasFolder bool) (all []agent.Definition) {
	for _, t := range s.Of(a, hasFolder) {
		all = append(all, agent.Definition{Name: t.Name, Schema: t.Schema})
	}
	return all
}

// Run calls a tool for a caller. args is a JSON object that a model wrote. A mistake of the model, such as the name of
// no tool, is a Result with IsError; an error is a failure of the server.
func (s *Set) Run(ctx context.Context, c Caller, name string, args json.RawMessage) (Result, error) {
	meant := s.Meant(c.Agent, name)
	if !s.Has(meant) {
		return Result{Text: cmp.Or(NotRun(name), s.unknown(name, s.namesOf(c.Agent))), IsError: true}, nil
	}
	t, err := s.named(meant)
	if err != nil {
		return Result{}, err
	}
	if t.ahead != nil {
		c = t.ahead(s.memories, ctx, c, args)
	}
	if !t.grows || s.memories.Agents == nil {
		return s.call(ctx, t, s.memories, c, args)
	}
	var result Result
	err = db.Tx(ctx, s.memories.Agents.DB, func(tx pgx.Tx) error {
		result, err = s.callIn(ctx, tx, t, c, args)
		return err
	})
	return result, err
}

// Meant returns the name of the tool that a model means: the name itself if a tool of the agent's program has it, or
// else what Named returns.
func (s *Set) Meant(a agent.Agent, name string) string {
	if slices.ContainsFunc(a.Attached, func(t agent.AttachedTool) bool { return t.Name == name }) &&
		(!s.Has(name) || !a.HasTool(name)) {
		return name
	}
	return inNameOf(a, Named(name))
}

// Runs reports whether a name means a tool of this server.
func (s *Set) Runs(name string) bool { return s.Has(Named(name)) }

// call runs a tool on m, like Run.
func (s *Set) call(ctx context.Context, t Tool, m Memories, c Caller, args json.RawMessage) (Result, error) {
	began := time.Now()
	m.Subagents = s.Subagents
	if user := c.Users.User(); user != 0 {
		ctx = db.WithUser(ctx, user)
	}
	result, err := t.call(ctx, m, c, args)
	if s.Observe != nil {
		s.Observe(Called{Name: t.Name, Refused: result.IsError, Failed: err != nil, Took: time.Since(began)})
	}
	return result, err
}

// NotGranted is Subagents.NotGranted.
func (s *Set) NotGranted(ctx context.Context, org db.Org, a agent.Agent, name string) (string, error) {
	if s.Subagents.NotGranted == nil {
		return "", nil
	}
	return s.Subagents.NotGranted(ctx, org, a, name)
}

// named returns the tool with a name; ErrNotFound if there is none.
func (s *Set) named(name string) (Tool, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, db.NotFound("%s", s.unknown(name, s.names()))
	}
	return s.tools[i], nil
}

func (s *Set) names() []string {
	var names []string
	for _, t := range s.tools {
		names = append(names, t.Name)
	}
	return names
}

// ByID returns the tool with an id; ErrNotFound if there is none.
func (s *Set) ByID(id string) (Tool, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.ID == id })
	if i < 0 {
		return Tool{}, db.NotFound("Tool with ID %s not found", echo(id))
	}
	return s.tools[i], nil
}

// unknown returns a phrase for a model that called a tool that does not exist. It lists the known tools, the most
// similar name first.
func (s *Set) unknown(name string, known []string) string {
	text := "there is no tool '" + echo(name) + "'; "
	if len(known) == 0 {
		return text + "you have no tools"
	}
	if nearest := similar(name, known); nearest != "" {
		text += "the nearest is " + nearest + ", and "
	}
	return text + "the tools are " + joined(known)
}

// similar returns the name that is nearest to a name; empty if none is near.
func similar(name string, known []string) string {
	if len(known) == 0 || name == "" {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
	if distance(name, nearest) > len(name)/2 {
		return ""
	}
	return nearest
}

// Available says which tools a model has that called another, and which of them has a name similar to this one.
func Available(name string, names []string) string {
	if len(names) == 0 {
		return "You have no tools."
	}
	text := "Your tools are " + joined(names) + "."
	if nearest := similar(name, names); nearest != "" {
		return "The nearest of your tools is " + nearest + ". " + text
	}
	return text
}
