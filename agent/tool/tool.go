// Package tool holds the tools by which a model works its memories, with every text that a model reads of them:
// schemas, results and errors. The memories do not know the tools.
package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/erase"
)

// Memories are the stores that the tools work on.
type Memories struct {
	Files    *files.Store
	Recall   *recall.Store
	Blocks   *block.Store
	Archival *archival.Store
	Working  *working.Store

	MemoryFiles *memoryfile.Store

	Agents   *agent.Store                                    // their policies bound reads of files; nil bounds none
	Erasures *erase.Store                                    // nil takes no requests
	Models   func(context.Context, string) *compaction.Model // that phrase answers; may be nil

	JQ *jq.Runner // of query_result; nil runs none

	// Child returns where the log of a sub-agent of an agent is, by the sub-agent's id. ErrNotFound if it does not exist.
	Child func(ctx context.Context, org db.Org, agentID, id string) (ChildLog, error)
}

// ChildLog is where a sub-agent works: in a conversation of an agent, from one position of the agent's log to another.
type ChildLog struct {
	Parent       string `db:"parent_conversation"` // the one that it works for: an id, or recall.DefaultConversation
	AgentID      string `db:"agent_id"`
	Conversation string `db:"conversation_id"`
	From         int64  `db:"from_seq"`
	To           int64  `db:"to_seq"`
}

// in returns the stores working in tx.
func (m Memories) in(tx pgx.Tx) Memories {
	in := Memories{Files: m.Files.With(tx), Recall: m.Recall.With(tx), Blocks: m.Blocks.With(tx),
		Archival: m.Archival.With(tx), Working: m.Working.With(tx), MemoryFiles: m.MemoryFiles.With(tx), Models: m.Models,
		JQ: m.JQ, Child: m.Child}
	if m.Agents != nil {
		in.Agents = m.Agents.With(tx)
	}
	if m.Erasures != nil {
		in.Erasures = m.Erasures.With(tx)
	}
	return in
}

// Set is the tools of this server.
type Set struct {
	Observe func(Called) // gets each call that has ended; may be nil

	memories Memories
	tools    []Tool
}

// Called is a call of a tool that has ended.
type Called struct {
	Name    string
	Refused bool // for a reason that a model can act on
	Failed  bool // by the server's fault
	Took    time.Duration
}

// Tool is a tool of a Set, whose ID is the same in every installation, or of an agent's program. Schema, for the model,
// is an object of name, description and parameters, the last a JSON schema. If NeedsFolder is true, an agent has the
// tool only while it has a folder.
type Tool struct {
	ID          string
	Name        string
	Description string
	Schema      json.RawMessage
	NeedsFolder bool
	ByClient    bool // it is a definition of the agent's program, which runs it

	reads     bool     // it changes nothing, and may ask an embedding model
	arguments []string // the names it takes, in the order of its struct
	run       func(ctx context.Context, m Memories, c Caller, args json.RawMessage) (Result, error)
}

// Caller is the agent for which a tool runs.
type Caller struct {
	Org          db.Org
	Agent        agent.Agent
	Conversation string   // the id of the one in which the model calls the tool; empty is the default one
	Confined     bool     // the tools show nothing of the agent's other conversations
	Only         []string // the tools that it may call; nil is all
	Unprompted   bool     // its model sees no prompt of the agent: results leave out nothing because a prompt has it
}

// CallerIn returns an agent as the caller of tools in a conversation.
func CallerIn(org db.Org, a agent.Agent, c recall.Conversation) Caller {
	caller := Caller{Org: org, Agent: a, Only: c.OnlyTools,
		Confined: c.Delegated || a.Settings.RecallScope == agent.ScopeConversation}
	if !c.IsDefault {
		caller.Conversation = c.ID
	}
	return caller
}

// has returns the tools that the results of a call may name.
func (c Caller) has() recall.Toolset { return c.Agent.HasTool }

// within returns the conversation that a call is confined to; empty if it is to none.
func (c Caller) within() string {
	if !c.Confined {
		return ""
	}
	return cmp.Or(c.Conversation, recall.DefaultConversation)
}

// Result is the answer of a tool: a text of at most MaxChars characters for the model, and the files that it opened,
// for callers who keep their own prompt. If IsError is true, the tool did nothing, and the text says why.
type Result struct {
	Text    string
	IsError bool
	Files   []files.Opened
}

// New returns the tools that work on m, in the order in which a model should read them.
func New(m Memories) *Set {
	return &Set{memories: m, tools: []Tool{
		withFolder(define("open_files", Memories.openFiles)),
		withFolder(reading(define("grep_files", Memories.grepFiles))),
		withFolder(reading(define("semantic_search_files", Memories.searchFiles))),
		withFolder(reading(define("list_files", Memories.listFiles))),
		withFolder(define("close_files", Memories.closeFiles)),
		reading(define("conversation_search", Memories.searchConversations)),
		reading(define("expand", Memories.expand)),
		reading(define(agent.QueryResult, Memories.queryResult)),
		reading(define("search_memory", Memories.searchMemory)),
		reading(define("ask_session", Memories.askSession)),
		define("core_memory_append", Memories.coreMemoryAppend),
		define("core_memory_replace", Memories.coreMemoryReplace),
		define("memory_insert", Memories.memoryInsert),
		define("memory_replace", Memories.memoryReplace),
		define("memory_rethink", Memories.memoryRethink),
		define("memory_apply_patch", Memories.memoryApplyPatch),
		define("memory", Memories.memory),
		define(UpdateWorkingMemory, Memories.updateWorkingMemory),
		define(memoryFilesTool, Memories.memoryFiles),
		define("archival_memory_insert", Memories.archivalInsert),
		reading(define("archival_memory_search", Memories.archivalSearch)),
		define("archival_memory_update", Memories.archivalUpdate),
		define("archival_memory_delete", Memories.archivalDelete),
		define("request_erasure", Memories.requestErasure),
	}}
}

// Tools returns every tool.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Of returns the tools that an agent has, those of its program last.
func (s *Set) Of(a agent.Agent, hasFolder bool) (all []Tool) {
	for _, t := range s.tools {
		if a.HasTool(t.Name) && (hasFolder || !t.NeedsFolder) {
			all = append(all, t)
		}
	}
	for _, t := range a.Attached {
		if !s.Has(t.Name) { // a later version may have a tool of the name
			all = append(all, Tool{ID: t.ID, Name: t.Name, Schema: t.Schema, ByClient: true})
		}
	}
	return all
}

// Definitions returns an agent's tools as its model is given them.
func (s *Set) Definitions(a agent.Agent, hasFolder bool) (all []agent.Definition) {
	for _, t := range s.Of(a, hasFolder) {
		all = append(all, agent.Definition{Name: t.Name, Schema: t.Schema})
	}
	return all
}

// Run calls a tool for a caller with arguments that a model wrote: a JSON object. A mistake of the model is a Result
// with IsError. ErrNotFound if no tool has this name; any other error is the server's failure.
func (s *Set) Run(ctx context.Context, c Caller, name string, args json.RawMessage) (Result, error) {
	t, err := s.named(inNameOf(c.Agent, name))
	if err != nil {
		return Result{}, err
	}
	return s.call(ctx, t, s.memories, c, args)
}

// call runs a tool on m as Run does.
func (s *Set) call(ctx context.Context, t Tool, m Memories, c Caller, args json.RawMessage) (Result, error) {
	began := time.Now()
	result, err := t.call(ctx, m, c, args)
	if s.Observe != nil {
		s.Observe(Called{Name: t.Name, Refused: result.IsError, Failed: err != nil, Took: time.Since(began)})
	}
	return result, err
}

// named returns the tool of a name; ErrNotFound if there is none.
func (s *Set) named(name string) (Tool, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, db.NotFound("%s", s.unknown(name))
	}
	return s.tools[i], nil
}

// call runs the tool on m as Set.Run does.
func (t Tool) call(ctx context.Context, m Memories, c Caller, args json.RawMessage) (Result, error) {
	if c.Only != nil && !slices.Contains(c.Only, t.Name) {
		return Result{IsError: true, Text: fmt.Sprintf("The tool %s may not be called in this conversation, which is a "+
			"sub-agent's. Those that may: %s", t.Name, cmp.Or(joined(c.Only), "none"))}, nil
	}
	ctx = db.WithProvenance(ctx, db.Provenance{AgentID: c.Agent.ID, ConversationID: c.Conversation, Tool: t.Name})
	result, err := t.run(ctx, m, c, args)
	switch {
	case refused(err):
		return Result{Text: failure(err), IsError: true}, nil
	case err != nil:
		return Result{}, fmt.Errorf("run %s: %w", t.Name, err)
	}
	result.Text = capped(result.Text)
	return result, nil
}

// refused reports whether a tool did nothing for a reason that a model can act on.
func refused(err error) bool {
	_, quota := db.QuotaExceeded(err)
	return quota || errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrConflict)
}

func (s *Set) names() []string {
	var names []string
	for _, t := range s.tools {
		names = append(names, t.Name)
	}
	return names
}

func withFolder(t Tool) Tool {
	t.NeedsFolder = true
	return t
}

func reading(t Tool) Tool {
	t.reads = true
	return t
}

// define returns the tool with the schema of a name, which calls do with its arguments. The schema and the struct A
// must have the same arguments.
func define[A any](name string, do func(Memories, context.Context, Caller, A) (Result, error)) Tool {
	schema := schemaOf(name)
	return Tool{
		ID:          "tool-" + uuid.NewHash(sha256.New(), uuid.NameSpaceOID, []byte(name), 4).String(),
		Name:        schema.Name,
		Description: schema.Description,
		Schema:      schema.text,
		arguments:   argumentsOf[A](),
		run: func(ctx context.Context, m Memories, c Caller, raw json.RawMessage) (Result, error) {
			var given, restored A
			for _, args := range []*A{&given, &restored} {
				if err := decode(name, raw, args); err != nil {
					return Result{}, err
				}
			}
			restore(reflect.ValueOf(&restored).Elem())
			result, err := do(m, ctx, c, restored)
			if refused(err) && !reflect.DeepEqual(given, restored) { // the marks may be the text's own
				if asGiven, err := do(m, ctx, c, given); err == nil {
					return asGiven, nil
				}
			}
			return result, err
		},
	}
}

// ByID returns a tool by its id; ErrNotFound if there is none.
func (s *Set) ByID(id string) (Tool, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.ID == id })
	if i < 0 {
		return Tool{}, db.NotFound("Tool with ID %s not found", echo(id))
	}
	return s.tools[i], nil
}

// unknown returns a phrase that says that no tool has a name, and which name is similar if one is.
func (s *Set) unknown(name string) string {
	text := "there is no tool '" + echo(name) + "'; "
	nearest := slices.MinFunc(s.names(), func(a, b string) int { return distance(name, a) - distance(name, b) })
	if distance(name, nearest) <= len(name)/2 {
		text += "the nearest is " + nearest + ", and "
	}
	return text + "the tools are " + joined(s.names())
}

// distance returns how many bytes must be inserted, deleted or replaced to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
