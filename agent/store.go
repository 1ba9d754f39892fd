package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Store stores agents in Postgres.
type Store struct {
	DB       db.DB
	Files    *files.Store
	Recall   *recall.Store
	Blocks   *block.Store
	Archival *archival.Store
	Working  *working.Store
	Tokens   *tokens.Counter // nil: nothing is remembered between counts

	Compaction *compaction.Compactor

	MemoryFiles *memoryfile.Store

	// Begun is called for each new conversation, in the transaction that creates it, also for one that replaces a reset
	// one; nil does nothing.
	Begun func(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation) error

	Policy json.RawMessage  // for agents of organizations that set none, in the form of package policy; nil: not set
	Now    func() time.Time // nil: time.Now

	// HasWriter reports whether another server has a model that writes summaries. It is asked by a server without one; nil
	// answers no.
	HasWriter func(context.Context) (bool, error)

	// Recalled searches the memories for a message, and returns what helps with it; nil recalls nothing.
	Recalled func(ctx context.Context, f RecallFor) (note string, err error)

	Tools Definitions           // nil: no tools
	Jobs  *river.Client[pgx.Tx] // for window checks; nil queues none
}

// With returns the store, and the stores in it, for use in transaction tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Files: s.Files.With(tx), Recall: s.Recall.With(tx), Blocks: s.Blocks.With(tx),
		MemoryFiles: s.MemoryFiles.With(tx), Archival: s.Archival.With(tx), Working: s.Working.With(tx), Tokens: s.Tokens,
		Compaction: s.Compaction.With(tx), Policy: s.Policy, Now: s.Now, Tools: s.Tools, Jobs: s.Jobs, Begun: s.Begun,
		HasWriter: s.HasWriter, Recalled: s.Recalled}
}

const ownColumns = `key, id, name, agent_type, description, metadata, system, tags, timezone, model, embedding,
	context_window_limit, max_files_open, per_file_view_window_char_limit, hidden, settings, created_at, updated_at,
	system_changed_at,
	last_run_completion, last_run_duration_ms, last_stop_reason, depth`

const columns = ownColumns + `, ` + attachedTools + `, ` + definedSubagents + `, ` + hasSkills

// orNoAgent turns ErrNotFound into one that names the agent, and returns any other error unchanged.
func orNoAgent(err error, id string) error {
	return db.OrNotFound(err, "Agent with ID %s not found", id)
}

// Agent returns an agent by its id. ErrNotFound if it does not exist.
func (s *Store) Agent(ctx context.Context, org db.Org, id string) (Agent, error) {
	a, err := db.One[Agent](ctx, s.DB, `SELECT `+columns+` FROM agents WHERE org = $1 AND id = $2`, org, id)
	return a, orNoAgent(err, id)
}

// Zone returns the time zone that all of these agents share; UTC if they differ, or there are none.
func (s *Store) Zone(ctx context.Context, org db.Org, ids ...string) (*time.Location, error) {
	zones, err := db.All[string](ctx, s.DB, `
		SELECT DISTINCT timezone FROM agents WHERE org = $1 AND id = ANY ($2) ORDER BY timezone LIMIT 2`, org, ids)
	if len(zones) != 1 {
		return time.UTC, err
	}
	return Agent{Timezone: zones[0]}.Zone(), err
}

const filtered = ` FROM agents
	WHERE org = @org AND (@name = '' OR name = @name) AND (@hidden OR NOT hidden)
	  AND @stop_reason IN ('', last_stop_reason) AND (@contains = '' OR strpos(lower(name), lower(@contains)) > 0)
	  AND (cardinality(@tags::text[]) = 0 OR CASE WHEN @all_tags THEN tags @> @tags ELSE tags && @tags END)
	  AND (@identity = '' AND @identifiers::text[] IS NULL OR EXISTS (
		SELECT FROM agent_identities x JOIN identities i ON i.org = x.org AND i.key = x.identity_key
		WHERE x.org = @org AND i.org = @org AND x.agent_id = agents.id AND @identity IN ('', i.id)
		  AND (@identifiers::text[] IS NULL OR i.identifier_key = ANY (@identifiers))))`

func (f Filter) args(org db.Org) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "name": f.Name, "contains": f.Contains, "tags": notNil(f.Tags),
		"all_tags": f.AllTags, "hidden": f.Hidden, "identity": f.Identity, "identifiers": f.IdentifierKeys,
		"stop_reason": f.StopReason}
}

// List lists the agents that match a filter.
func (s *Store) List(ctx context.Context, org db.Org, f Filter, p db.Page) ([]Agent, error) {
	p.Order = f.Order
	return db.List[Agent](ctx, s.DB, p, `SELECT `+db.Named(columns)+filtered, f.args(org))
}

// Count returns how many agents match a filter.
func (s *Store) Count(ctx context.Context, org db.Org, f Filter) (int, error) {
	return db.One[int](ctx, s.DB, `SELECT count(*)`+filtered, f.args(org))
}

// Tags lists the distinct tags of the organization's agents that contain a text, in byte order.
func (s *Store) Tags(ctx context.Context, org db.Org, contains string, p db.Page) ([]string, error) {
	p.Order = "id"
	return db.List[string](ctx, s.DB, p, `
		SELECT DISTINCT t.tag COLLATE "C" AS id FROM agents a CROSS JOIN LATERAL unnest(a.tags) AS t (tag)
		WHERE a.org = @org AND strpos(lower(t.tag), lower(@contains)) > 0`,
		pgx.StrictNamedArgs{"org": org, "contains": contains})
}

// RunEnded stores how a run of an agent ended; agent is a key. The run ended when the transaction began.
func RunEnded(ctx context.Context, tx pgx.Tx, org db.Org, agent int64, last LastRun) error {
	return db.Exec(ctx, tx, `
		UPDATE agents SET last_run_completion = now(), last_run_duration_ms = $3, last_stop_reason = $4
		WHERE org = $1 AND key = $2`, org, agent, last.DurationMS, last.StopReason)
}

// Delete deletes an agent with its conversations, its events and its list of open files. Folders stay.
func (s *Store) Delete(ctx context.Context, org db.Org, id string) error {
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		// All transactions lock in this order: attachments, conversations, the head of events, the agent.
		inTx := s.With(tx)
		if err := inTx.Files.LockFolders(ctx, org, id, nil); err != nil {
			return err
		}
		if err := inTx.Recall.Forget(ctx, org, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			SELECT FROM agent_heads WHERE org = $1 AND agent_id = $2 FOR UPDATE`, org, id); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "agents", `r.id = $2`, org, id)
	})
	return orNoAgent(err, id)
}
