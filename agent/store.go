package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
)

// With returns the store with all statements, also those of the other stores, in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Files: s.Files.With(tx), Recall: s.Recall.With(tx), Blocks: s.Blocks.With(tx),
		MemoryFiles: s.MemoryFiles.With(tx), Archival: s.Archival.With(tx), Working: s.Working.With(tx), Tokens: s.Tokens,
		Compaction: s.Compaction.With(tx), Policy: s.Policy, Now: s.Now, Tools: s.Tools, Jobs: s.Jobs, Begun: s.Begun}
}

const columns = `key, id, name, agent_type, description, metadata, system, tags, timezone, model, embedding,
	context_window_limit, max_files_open, per_file_view_window_char_limit, hidden, settings, created_at, updated_at,
	system_changed_at,
	last_run_completion, last_run_duration_ms, last_stop_reason, depth, ` + attachedTools

// orNoAgent returns an ErrNotFound that names an agent for an ErrNotFound, and any other error unchanged.
func orNoAgent(err error, id string) error {
	return db.OrNotFound(err, "Agent with ID %s not found", id)
}

// Agent returns an agent by its id. ErrNotFound if it does not exist.
func (s *Store) Agent(ctx context.Context, org db.Org, id string) (Agent, error) {
	a, err := db.One[Agent](ctx, s.DB, `SELECT `+columns+` FROM agents WHERE org = $1 AND id = $2`, org, id)
	return a, orNoAgent(err, id)
}

// Zone returns the time zone that all of some agents have; UTC if they differ, or if there are none.
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
	return db.List[Agent](ctx, s.DB, p, `SELECT `+columns+filtered, f.args(org))
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

// Update changes an agent. If a limit of open files falls, the least recently used files beyond it are closed.
func (s *Store) Update(ctx context.Context, org db.Org, id string, u Update) (Agent, error) {
	if u.Name != nil {
		if err := checkName(*u.Name); err != nil {
			return Agent{}, err
		}
	}
	if err := cmp.Or(db.CheckTags(u.Tags), u.Settings.check(),
		checkLimits(u.WindowLimit.Value, u.MaxFilesOpen.Value, u.ViewChars.Value)); err != nil {
		return Agent{}, err
	}
	var a Agent
	compaction := u.Settings.CompactionSettings
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		was, err := in.Agent(ctx, org, id)
		if err != nil {
			return err
		}
		if u.System, err = in.newSystem(ctx, org, was, u.System); err != nil {
			return err
		}
		if u.FolderIDs != nil {
			if err := in.Files.LockFolders(ctx, org, id, u.FolderIDs); err != nil {
				return err
			}
		}
		if err := in.lockNamed(ctx, org, u.RuleTools); err != nil {
			return err
		}
		added, err := in.attach(ctx, org, id, u)
		if err != nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: id, Type: event.AgentUpdated, RefID: id}); err != nil {
			return err
		}
		if was, err = in.Agent(ctx, org, id); err != nil { // under the agent's lock: another change may have been stored
			return err
		}
		u.Settings.CompactionSettings, err = mergeCompaction(was.Settings.CompactionSettings, compaction)
		if err != nil {
			return err
		}
		if a, err = in.change(ctx, org, id, u); err != nil {
			return err
		}
		if a, err = in.askForAdded(ctx, org, a, added); err != nil { // after the change, which may set other rules
			return err
		}
		if err := in.recordPolicy(ctx, org, policyChanged{AgentID: id,
			Was: was.Settings.CompactionSettings, Now: a.Settings.CompactionSettings}); err != nil {
			return err
		}
		if u.FolderIDs != nil {
			if err := in.Files.SetFolders(ctx, org, id, u.FolderIDs, a.Limits()); err != nil {
				return err
			}
		}
		_, err = in.Files.Trim(ctx, org, id, a.Limits())
		return err
	})
	return a, err
}

// newSystem returns the instructions that an update sets: nil for the default ones, which a client may send back.
func (s *Store) newSystem(ctx context.Context, org db.Org, was Agent, system *string) (*string, error) {
	if system == nil || *system == "" {
		return system, nil
	}
	tools, err := s.Definitions(ctx, org, was)
	if err == nil && *system == was.Instructions(tools) {
		return nil, nil
	}
	return system, err
}

// attach gives an agent the tools, identities and blocks of an update. It returns the tools that are new to it.
func (s *Store) attach(ctx context.Context, org db.Org, id string, u Update) (added []int64, err error) {
	if u.ToolIDs != nil {
		if added, err = s.setTools(ctx, org, id, u.ToolIDs); err != nil {
			return nil, err
		}
	}
	if u.IdentityIDs != nil {
		if err := s.setIdentities(ctx, org, id, u.IdentityIDs); err != nil {
			return nil, err
		}
	}
	if u.BlockIDs != nil {
		return added, s.Blocks.Set(ctx, org, id, u.BlockIDs)
	}
	return added, nil
}

// ChangeSettings changes settings of an agent. change returns those to change, or nil to change nothing; it may be
// called twice.
func (s *Store) ChangeSettings(ctx context.Context, org db.Org, id string,
	change func(Agent) (*Settings, error)) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		a, err := in.Agent(ctx, org, id)
		if err != nil {
			return err
		}
		if changed, err := change(a); err != nil || changed == nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: id, Type: event.AgentUpdated, RefID: id}); err != nil {
			return err
		}
		if a, err = in.Agent(ctx, org, id); err != nil { // under the agent's lock
			return err
		}
		changed, err := change(a)
		if err != nil || changed == nil {
			return err
		}
		_, err = in.change(ctx, org, id, Update{Settings: *changed})
		return err
	})
}

func (s *Store) change(ctx context.Context, org db.Org, id string, u Update) (Agent, error) {
	return db.One[Agent](ctx, s.DB, `
		UPDATE agents
		SET name = coalesce(@name, name), description = coalesce(@description, description),
		    system = coalesce(@system, system), timezone = coalesce(@timezone, timezone), model = coalesce(@model, model),
		    embedding = coalesce(@embedding, embedding), metadata = coalesce(@metadata, metadata),
		    tags = coalesce(@tags, tags), hidden = coalesce(@hidden, hidden),
		    context_window_limit = CASE WHEN @set_window THEN @window ELSE context_window_limit END,
		    max_files_open = CASE WHEN @set_max_files THEN @max_files ELSE max_files_open END,
		    per_file_view_window_char_limit =
		        CASE WHEN @set_view_chars THEN @view_chars ELSE per_file_view_window_char_limit END,
		    settings = (settings - coalesce(@unset::text[], '{}')) || @settings ||
		               CASE WHEN @model_settings::jsonb IS NULL THEN '{}' ELSE
		        jsonb_build_object('model_settings', (
		            SELECT jsonb_object_agg(key, value)
		            FROM jsonb_each(coalesce(nullif(settings -> 'model_settings', 'null'), '{}') || @model_settings)
		            WHERE value <> 'null')) END,
		    last_run_completion = coalesce(@completion, last_run_completion),
		    last_run_duration_ms = coalesce(@duration, last_run_duration_ms),
		    last_stop_reason = coalesce(@stop, last_stop_reason), updated_at = now(),
		    system_changed_at = CASE WHEN @shown THEN now() ELSE system_changed_at END
		WHERE org = @org AND id = @id
		RETURNING `+columns,
		pgx.StrictNamedArgs{"org": org, "id": id, "name": u.Name, "description": u.Description, "system": u.System,
			"timezone": u.Timezone, "model": u.Model, "embedding": u.Embedding, "metadata": u.Metadata, "tags": u.Tags,
			"hidden": u.Hidden, "set_window": u.WindowLimit.Set, "window": u.WindowLimit.Value,
			"set_max_files": u.MaxFilesOpen.Set, "max_files": u.MaxFilesOpen.Value,
			"set_view_chars": u.ViewChars.Set, "view_chars": u.ViewChars.Value, "settings": u.Settings,
			"unset": u.Unset, "model_settings": u.ModelSettings, "completion": u.LastRun.Completion,
			"duration": u.LastRun.DurationMS,
			"stop":     u.LastRun.StopReason, "shown": u.isShown()})
}

// RunEnded notes in a transaction how a run of an agent ended, by the agent's key. The run ended when the transaction
// began.
func RunEnded(ctx context.Context, tx pgx.Tx, org db.Org, agent int64, last LastRun) error {
	return db.Exec(ctx, tx, `
		UPDATE agents SET last_run_completion = now(), last_run_duration_ms = $3, last_stop_reason = $4
		WHERE org = $1 AND key = $2`, org, agent, last.DurationMS, last.StopReason)
}

// Delete deletes an agent with its conversations, its events, and its list of open files. Folders stay.
func (s *Store) Delete(ctx context.Context, org db.Org, id string) error {
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		// All transactions lock in this order: attachments, conversations, the head of events, the agent.
		in := s.With(tx)
		if err := in.Files.LockFolders(ctx, org, id, nil); err != nil {
			return err
		}
		if err := in.Recall.Forget(ctx, org, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			SELECT FROM agent_heads WHERE org = $1 AND agent_id = $2 FOR UPDATE`, org, id); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `DELETE FROM agents WHERE org = $1 AND id = $2`, org, id)
	})
	return orNoAgent(err, id)
}

// LimitsOf returns the limits of several agents, by their ids, as files.Options.Limits wants them.
func LimitsOf(ctx context.Context, d db.DB, org db.Org, ids []string) (map[string]files.Limits, error) {
	agents, err := db.All[Agent](ctx, d, `SELECT `+columns+` FROM agents WHERE org = $1 AND id = ANY ($2)`, org, ids)
	limits := make(map[string]files.Limits, len(agents))
	for _, a := range agents {
		limits[a.ID] = a.Limits()
	}
	return limits, err
}
