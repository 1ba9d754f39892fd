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
	"maps"
	"slices"
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
	seqs, err := advance(ctx, tx, org, events)
	if err != nil {
		return nil, err
	}
	written := slices.Clone(events)
	for i := len(written) - 1; i >= 0; i-- {
		written[i].Seq = seqs[written[i].AgentID]
		seqs[written[i].AgentID]--
	}
	if len(written) > fewEvents {
		return written, insertMany(ctx, tx, org, written)
	}
	var batch pgx.Batch
	for i := range written {
		e := &written[i]
		batch.Queue(`
			INSERT INTO events (org, agent_id, seq, type, ref_id, at) VALUES ($1, $2, $3, $4, $5, clock_timestamp())
			RETURNING at`, org, e.AgentID, e.Seq, e.Type, e.RefID).QueryRow(func(row pgx.Row) error { return row.Scan(&e.At) })
	}
	return written, db.Error(tx.SendBatch(ctx, &batch).Close())
}

// fewEvents are inserted one by one: in a cluster such a statement goes to the agent's node as it is.
const fewEvents = 8

// advance moves the heads of the events' agents in the order of their ids, and returns each agent's last Seq.
func advance(ctx context.Context, tx pgx.Tx, org db.Org, events []Event) (map[string]int64, error) {
	added, seqs := map[string]int64{}, map[string]int64{}
	for _, e := range events {
		added[e.AgentID]++
	}
	var batch pgx.Batch
	for _, agent := range slices.Sorted(maps.Keys(added)) {
		batch.Queue(`
			INSERT INTO agent_heads AS h (org, agent_id, seq) VALUES ($1, $2, $3)
			ON CONFLICT (org, agent_id) DO UPDATE SET seq = h.seq + excluded.seq
			RETURNING seq`, org, agent, added[agent]).QueryRow(func(row pgx.Row) error {
			var seq int64
			err := row.Scan(&seq)
			seqs[agent] = seq
			return err
		})
	}
	return seqs, db.Error(tx.SendBatch(ctx, &batch).Close())
}

// insertMany inserts events with one statement, and sets their At.
func insertMany(ctx context.Context, tx pgx.Tx, org db.Org, events []Event) error {
	agents, types, refs := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	seqs := make([]int64, len(events))
	for i, e := range events {
		agents[i], types[i], refs[i], seqs[i] = e.AgentID, string(e.Type), e.RefID, e.Seq
	}
	written, err := db.All[Event](ctx, tx, `
		INSERT INTO events (org, agent_id, seq, type, ref_id, at)
		SELECT $1, agent_id, seq, type, ref_id, clock_timestamp()
		FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[]) AS e (agent_id, seq, type, ref_id)
		RETURNING agent_id, seq, type, ref_id, at`, org, agents, seqs, types, refs)
	type place struct {
		agent string
		seq   int64
	}
	at := make(map[place]time.Time, len(written))
	for _, e := range written {
		at[place{e.AgentID, e.Seq}] = e.At
	}
	for i, e := range events {
		events[i].At = at[place{e.AgentID, e.Seq}]
	}
	return err
}
