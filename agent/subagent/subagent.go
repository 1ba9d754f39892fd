// Package subagent lets agents hand work to sub-agents. A sub-agent is an agent made for one task, or a copy of the
// conversation that hands the task out. The package owns the table of sub-agents, makes sub-agents, and brings their
// results to the log of their parent.
//
// Its files, in order: subagent.go has the store and finds sub-agents; defaultfiles.go has what is granted by default;
// newagent.go makes the agent of a sub-agent that is no copy; defined.go reads definitions of sub-agents; create.go
// makes a sub-agent and gives it its task; return.go brings its result, or cancels it; fortool.go starts sub-agents for
// models that call a tool.
package subagent

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
)

// Store keeps sub-agents in Postgres.
type Store struct {
	DB     db.DB
	Agents *agent.Store
	Loop   *loop.Loop
}

// with returns a store that works in tx.
func (s *Store) with(tx pgx.Tx) *Store {
	return &Store{DB: tx, Agents: s.Agents.With(tx), Loop: s.Loop}
}

// The modes of a sub-agent say what it gets from its parent.
const (
	Blank = "blank" // only its task
	Brief = "brief" // its task, the working memory of the parent's conversation, and files
	Fork  = "fork"  // a copy of the parent's conversation
)

// The states of a sub-agent.
const (
	Working   = "working"
	Returned  = "returned"
	Failed    = "failed"    // its result says why
	Cancelled = "cancelled" // by a request, or because its conversation or its parent's was deleted; its result says why
)

// MaxDepth limits how deep sub-agents of sub-agents go. MaxWorking limits how many sub-agents of one agent work at
// once.
const (
	MaxDepth   = 4
	MaxWorking = 32
)

// Child is a sub-agent.
type Child struct {
	Key                  int64      `db:"key" json:"-"`
	ID                   string     `db:"id" json:"id"`
	ParentAgentID        string     `db:"parent_agent_id" json:"parent_agent_id" doc:"The agent that handed the task out."`
	ParentConversationID string     `db:"parent_conversation_id" json:"parent_conversation_id" doc:"It gets the result."`
	AgentID              string     `db:"agent_id" json:"agent_id,omitempty" doc:"Of a fork the parent."`
	ConversationID       string     `db:"conversation_id" json:"conversation_id,omitempty" doc:"Absent once deleted."`
	Mode                 string     `db:"mode" json:"mode" enum:"blank,brief,fork"`
	Name                 string     `db:"name" json:"name"`
	Task                 string     `db:"task" json:"task" doc:"What it was told to do." example:"Count the ships."`
	Depth                int        `db:"depth" json:"depth" doc:"1 is a sub-agent of an agent that is none."`
	OTID                 *string    `db:"otid" json:"otid"`
	ToolCallID           *string    `db:"call_id" json:"tool_call_id" doc:"The parent's call that the result answers."`
	Runs                 bool       `db:"runs" json:"run" doc:"The server runs it, and brings its result."`
	Status               string     `db:"status" json:"status" enum:"working,returned,failed,cancelled"`
	Result               *string    `db:"result" json:"result" doc:"All that it returned, or why it was cancelled."`
	MessageID            *string    `db:"message_id" json:"message_id" doc:"Of the result in the parent's log."`
	CreatedAt            time.Time  `db:"created_at" json:"created_at"`
	ReturnedAt           *time.Time `db:"returned_at" json:"returned_at" doc:"Null while it works."`

	CallPosition     *int   `db:"call_position" json:"-"`
	ParentKey        int64  `db:"parent_key" json:"-"`
	Awaited          bool   `db:"awaited" json:"-"`        // a run waits for the result
	AfterPosition    int    `db:"after_position" json:"-"` // position in its conversation before the task
	ParentIsDefault  bool   `db:"parent_is_default" json:"-"`
	ConversationName string `db:"conversation_name" json:"-"` // the id of its conversation, or recall.DefaultConversation
}

const rows = `
	SELECT k.key, k.id, p.id AS parent_agent_id, pc.id AS parent_conversation_id,
	       coalesce(a.id, '') AS agent_id, coalesce(c.id, '') AS conversation_id, k.mode, k.name, k.task, k.depth, k.otid,
		       k.call_id, k.runs, k.status, k.result,
	       k.message_id, k.created_at, k.returned_at, k.call_position, k.parent_key, k.after_position, k.awaited,
	       pc.is_default AS parent_is_default,
	       CASE WHEN c.is_default THEN 'default' ELSE coalesce(c.id, '') END AS conversation_name
	FROM children k
	JOIN agents p ON p.org = k.org AND p.key = k.parent_key
	JOIN conversations pc ON pc.org = k.org AND pc.key = k.parent_conversation
	LEFT JOIN agents a ON a.org = k.org AND a.key = k.agent_key
	LEFT JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key AND a.key IS NOT NULL
	WHERE k.org = @org`

// Filter narrows a list of sub-agents. An empty field does not filter.
type Filter struct {
	ParentID     string
	Conversation string // the id of the parent's conversation
	Status       string
}

// List lists sub-agents.
func (s *Store) List(ctx context.Context, org db.Org, f Filter, p db.Page) ([]Child, error) {
	return db.List[Child](ctx, s.DB, p, rows+` AND @parent IN ('', p.id) AND @conversation IN ('', pc.id)
		AND @status IN ('', k.status)`,
		pgx.StrictNamedArgs{"org": org, "parent": f.ParentID, "conversation": f.Conversation, "status": f.Status})
}

// Child returns a sub-agent of an agent by its id. ErrNotFound if the agent has no such sub-agent.
func (s *Store) Child(ctx context.Context, org db.Org, parentID, id string) (Child, error) {
	c, err := db.One[Child](ctx, s.DB, rows+` AND k.id = @id AND p.id = @parent`,
		pgx.StrictNamedArgs{"org": org, "id": id, "parent": parentID})
	return c, db.OrNotFound(err, "Agent %s has no sub-agent with ID %s", parentID, db.Short(id))
}

// LogOf returns a function that finds the log of a sub-agent, for the tool that reads the log.
func LogOf(d db.DB) func(ctx context.Context, org db.Org, agentID, id string) (tool.ChildLog, error) {
	return func(ctx context.Context, org db.Org, agentID, id string) (tool.ChildLog, error) {
		l, err := db.One[tool.ChildLog](ctx, d, `
			SELECT CASE WHEN pc.is_default THEN 'default' ELSE pc.id END AS parent_conversation, a.id AS agent_id,
			       CASE WHEN c.is_default THEN 'default' ELSE c.id END AS conversation_id, own.from_seq, own.to_seq
			FROM children k
			JOIN agents p ON p.org = k.org AND p.key = k.parent_key
			JOIN conversations pc ON pc.org = k.org AND pc.key = k.parent_conversation
			JOIN agents a ON a.org = k.org AND a.key = k.agent_key
			JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key
			CROSS JOIN LATERAL (
				SELECT min(m.seq) AS from_seq, max(m.seq) AS to_seq FROM messages m
				WHERE m.org = $1 AND m.conversation_key = k.conversation_key AND m.position > k.after_position
			) own
			WHERE k.org = $1 AND p.id = $2 AND k.id = $3 AND own.from_seq IS NOT NULL`, org, agentID, id)
		return l, db.OrNotFound(err, "There is no sub-agent with the id %q", db.Short(id))
	}
}

// depthOf returns the depth of a conversation. It is 0 unless a sub-agent works in the conversation, or in a
// conversation that this one was copied from.
func (s *Store) depthOf(ctx context.Context, org db.Org, conversation int64) (int, error) {
	return db.One[int](ctx, s.DB, `
		SELECT greatest(c.depth, a.depth)
		FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		WHERE c.org = $1 AND c.key = $2`, org, conversation)
}

// checkCount returns an ErrTooMany if an agent already has the largest number of working sub-agents.
func (s *Store) checkCount(ctx context.Context, org db.Org, parentKey int64) error {
	n, err := db.One[int](ctx, s.DB, `
		SELECT count(*)::integer FROM children WHERE org = $1 AND parent_key = $2 AND status = 'working'`, org, parentKey)
	if err == nil && n >= MaxWorking {
		return db.TooMany("%d sub-agents of the agent are at work, which is as many as it may have: let one return, or "+
			"cancel one",
			MaxWorking)
	}
	return err
}

// DeleteOf deletes the agents that were made as sub-agents of an agent, and in turn their sub-agents.
func (s *Store) DeleteOf(ctx context.Context, org db.Org, agentID string) error {
	ids, err := db.All[string](ctx, s.DB, `
		SELECT a.id FROM children k
		JOIN agents p ON p.org = k.org AND p.key = k.parent_key
		JOIN agents a ON a.org = k.org AND a.key = k.agent_key
		WHERE k.org = $1 AND p.id = $2 AND k.mode <> 'fork' AND a.key <> p.key`, org, agentID)
	for _, id := range ids {
		if err := s.DeleteOf(ctx, org, id); err != nil {
			return err
		}
		if err := s.Agents.Delete(ctx, org, id); err != nil && !isNotFound(err) {
			return fmt.Errorf("delete the sub-agent %s: %w", id, err)
		}
	}
	return err
}
