package tool

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/erase"
)

// Memories are the stores that the tools read and write.
type Memories struct {
	Files    *files.Store
	Recall   *recall.Store
	Blocks   *block.Store
	Archival *archival.Store
	Working  *working.Store

	MemoryFiles *memoryfile.Store

	Agents   *agent.Store                                 // has the policies that bound reads of files; nil: no bounds
	Erasures *erase.Store                                 // nil refuses requests
	Models   func(context.Context, string) *summary.Model // returns the model that phrases answers; may be nil

	JQ *jq.Runner // runs the expressions of query_result; nil runs none

	// Child finds the log of a sub-agent of an agent by the id of the sub-agent. ErrNotFound if there is no such
	// sub-agent.
	Child func(ctx context.Context, org db.Org, agentID, id string) (ChildLog, error)

	Subagents Subagents
}

// ChildLog is the place of a sub-agent's log: a conversation of an agent, and the positions in the agent's log between
// which the sub-agent works.
type ChildLog struct {
	Parent       string `db:"parent_conversation"` // the conversation of the model: an id, or recall.DefaultConversation
	AgentID      string `db:"agent_id"`
	Conversation string `db:"conversation_id"`
	From         int64  `db:"from_seq"`
	To           int64  `db:"to_seq"`
}

// in returns stores that work in tx.
func (m Memories) in(tx pgx.Tx) Memories {
	inTx := Memories{Files: m.Files.With(tx), Recall: m.Recall.With(tx), Blocks: m.Blocks.With(tx),
		Archival: m.Archival.With(tx), Working: m.Working.With(tx), MemoryFiles: m.MemoryFiles.With(tx), Models: m.Models,
		JQ: m.JQ, Child: m.Child, Subagents: m.Subagents}
	if m.Agents != nil {
		inTx.Agents = m.Agents.With(tx)
	}
	if m.Erasures != nil {
		inTx.Erasures = m.Erasures.With(tx)
	}
	return inTx
}

// Caller is the agent for which a tool runs.
type Caller struct {
	Org          db.Org
	Agent        agent.Agent
	Conversation string       // the conversation in which the model calls the tool, by id; empty: the default one
	Confined     bool         // the tools show nothing of the agent's other conversations
	Users        db.UserScope // whose memories the tools read
	Only         []string     // names of the tools that it may call; nil allows all
	Unprompted   bool         // its model sees no prompt of the agent, so results leave nothing out

	Call  *recall.CallPlace // the call that runs; nil if no log has it
	Waits bool              // the caller waits for a started sub-agent, and takes its return as the call's result

	lookalikes archival.Lookalikes // passages that are similar to the one that archival_memory_insert stores
}

// CallerIn returns an agent as the caller of tools in a conversation.
func CallerIn(org db.Org, a agent.Agent, c recall.Conversation) Caller {
	caller := Caller{Org: org, Agent: a, Only: c.OnlyTools, Users: a.Users(c),
		Confined: c.Delegated || a.Settings.RecallScope == agent.ScopeConversation}
	if !c.IsDefault {
		caller.Conversation = c.ID
	}
	return caller
}

// has returns the set of tools that the results of a call may mention.
func (c Caller) has() recall.Toolset { return c.Agent.HasTool }

// maxChars returns how many characters a result may have that shows a text of any length: a quarter of the caller's
// window, where it is known, at 4 characters per token.
func (c Caller) maxChars() int {
	if c.Unprompted {
		return MaxChars
	}
	return c.Agent.ResultChars()
}

// readChars returns how many characters of files a result may show. If a policy bounds reads, the usual bound of a
// result does not come before the policy's.
func (c Caller) readChars(bounds *policy.ReadBounds) int {
	switch window := c.Agent.Window(); {
	case bounds == nil:
		return c.maxChars()
	case c.Unprompted || window == 0:
		return recall.MaxResultsChars
	default:
		return min(recall.MaxResultsChars, window)
	}
}

// within returns the id of the only conversation that a call may read; empty if it may read all.
func (c Caller) within() string {
	if !c.Confined {
		return ""
	}
	return cmp.Or(c.Conversation, recall.DefaultConversation)
}

// reach returns which conversations a call may read.
func (c Caller) reach() recall.Reach { return recall.Reach{Conversation: c.within(), Users: c.Users} }

// folders returns which files a call may read.
func (c Caller) folders() files.Reach { return files.Reach{AgentID: c.Agent.ID, Users: c.Users} }

// archives returns which archives a call may read and write.
func (c Caller) archives() archival.Reach { return archival.Reach{AgentID: c.Agent.ID, Users: c.Users} }

// Result is the answer of a tool. Text, for the model, has at most MaxChars characters, and more
// only where a policy bounds what a tool reads of files. Files are the files that the
// tool opened, for callers who keep their own prompt. If IsError is true, the tool did nothing, and the text says why.
type Result struct {
	Text    string
	IsError bool
	Files   []files.Opened

	chars    int     // the most that Text may have, in characters; 0: MaxChars
	value    *string // the new value of a block that was edited
	Overflow bool    // with IsError: a block would be longer than its limit
	Subagent string  // the id of the sub-agent that the caller waits for; the call has no result yet
}
