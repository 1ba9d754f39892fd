// Package event keeps a log of what happens to each agent, ordered by a counter. It serves the log's readers: slices,
// named consumers, and followers.
//
// Each file uses only the files named before it:
//   - events and their log: event.go log.go
//   - readers of the log: consumer.go poller.go follower.go
//   - events in the file of an agent: portable.go
package event

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Type is the type of an event.
type Type string

// The types of events. The types of all memories are here, because one counter orders them all.
const (
	AgentCreated   Type = "agent_created"
	AgentUpdated   Type = "agent_updated"
	FolderAttached Type = "folder_attached"
	FolderDetached Type = "folder_detached"
	FileOpened     Type = "file_opened"
	FileUsed       Type = "file_used"
	FileClosed     Type = "file_closed"

	MessageAppended Type = "message"

	ArchiveAttached  Type = "archive_attached"
	ArchiveDetached  Type = "archive_detached"
	PassageInserted  Type = "passage_inserted"
	PassagesInserted Type = "passages_inserted" // many at once; RefID is the archive
	PassageUpdated   Type = "passage_updated"
	PassageDeleted   Type = "passage_deleted"
	BlockAttached    Type = "block_attached"
	BlockDetached    Type = "block_detached"
	BlockChanged     Type = "block_changed"

	MemoryTreeAttached Type = "memory_tree_attached"
	MemoryTreeDetached Type = "memory_tree_detached"
	MemoryFileChanged  Type = "memory_file_changed"

	Compacted          Type = "compaction"
	CompactionReverted Type = "compaction_reverted"
	WindowWarning      Type = "window_warning" // three quarters of the window are in use; RefID is the conversation

	// PromptRefused: a provider refused a prompt because of its content, and messages left the view. RefusalUndone: their
	// turn is tried again, and they are back. RefID is the conversation.
	PromptRefused Type = "prompt_refused"
	RefusalUndone Type = "refusal_undone"

	PromptsGrowing Type = "prompts_growing" // each by more than 2 % of the window; RefID is the conversation

	WorkingMemoryChanged Type = "working_memory_changed" // RefID is the conversation

	PolicyChanged Type = "policy_changed" // RefID is the agent or the conversation
)

// Types lists all types.
var Types = []Type{AgentCreated, AgentUpdated, FolderAttached, FolderDetached, FileOpened, FileUsed, FileClosed,
	MessageAppended, ArchiveAttached, ArchiveDetached, PassageInserted, PassagesInserted, PassageUpdated, PassageDeleted,
	BlockAttached, BlockDetached, BlockChanged, MemoryTreeAttached, MemoryTreeDetached, MemoryFileChanged, Compacted,
	CompactionReverted, WindowWarning, PromptRefused, RefusalUndone, PromptsGrowing, WorkingMemoryChanged, PolicyChanged}

// Event is something that happened to an agent. Seq numbers an agent's events from 1, without a gap, in the order of
// their commits.
type Event struct {
	AgentID string    `db:"agent_id" json:"-"`
	Seq     int64     `db:"seq" json:"seq"`
	Type    Type      `db:"type" json:"type"`
	RefID   string    `db:"ref_id" json:"ref_id"` // id of the file, folder, message or agent that the event is about
	At      time.Time `db:"at" json:"at"`
}

// Lock locks the log of an agent until tx ends, and returns the Seq of its last event. ErrNotFound if there is no such
// agent.
func Lock(ctx context.Context, tx pgx.Tx, org db.Org, agentID string) (int64, error) {
	seq, err := db.One[int64](ctx, tx, `
		SELECT seq FROM agent_heads WHERE org = $1 AND agent_id = $2 FOR UPDATE`, org, agentID)
	return seq, db.OrNotFound(err, "there is no such agent")
}

// Append adds events to the logs of their agents. It returns them in the given order, with Seq and At. It locks the
// agents in the order of their ids until tx ends, so that no other transaction changes them in between. ErrNotFound if
// an agent does not exist.
func Append(ctx context.Context, tx pgx.Tx, org db.Org, events ...Event) ([]Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	agents, types, refs := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		agents[i], types[i], refs[i] = e.AgentID, string(e.Type), e.RefID
	}
	written, err := db.All[Event](ctx, tx, `
		WITH added AS (
			SELECT agent_id, type, ref_id, ord,
			       row_number() OVER (PARTITION BY agent_id ORDER BY ord) AS n,
			       count(*) OVER (PARTITION BY agent_id) AS total
			FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS e (agent_id, type, ref_id, ord)
		), heads AS (
			INSERT INTO agent_heads AS h (org, agent_id, seq)
			SELECT $1, agent_id, count(*) FROM added GROUP BY agent_id ORDER BY agent_id
			ON CONFLICT (org, agent_id) DO UPDATE SET seq = h.seq + excluded.seq
			RETURNING agent_id, seq
		), written AS (
			INSERT INTO events (org, agent_id, seq, type, ref_id, at)
			SELECT $1, a.agent_id, h.seq - a.total + a.n, a.type, a.ref_id, clock_timestamp()
			FROM added a JOIN heads h USING (agent_id)
			RETURNING agent_id, seq, type, ref_id, at
		)
		SELECT w.agent_id, w.seq, w.type, w.ref_id, w.at
		FROM written w
		JOIN heads h USING (agent_id)
		JOIN added a ON a.agent_id = w.agent_id AND w.seq = h.seq - a.total + a.n
		ORDER BY a.ord`, org, agents, types, refs)
	if err == nil && len(written) != len(events) {
		return nil, db.NotFound("there is no such agent")
	}
	return written, err
}
