package agent

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Update changes an agent. If the limit of open files falls, the least recently used files beyond it are closed.
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
		inTx := s.With(tx)
		stored, err := inTx.Agent(ctx, org, id)
		if err != nil {
			return err
		}
		if u.System, err = inTx.newSystem(ctx, org, stored, u.System); err != nil {
			return err
		}
		if u.FolderIDs != nil {
			if err := inTx.Files.LockFolders(ctx, org, id, u.FolderIDs); err != nil {
				return err
			}
		}
		if err := inTx.lockNamed(ctx, org, u.RuleTools); err != nil {
			return err
		}
		added, err := inTx.attach(ctx, org, id, u)
		if err != nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: id, Type: event.AgentUpdated, RefID: id}); err != nil {
			return err
		}
		if stored, err = inTx.Agent(ctx, org, id); err != nil { // under the agent's lock: another change may be stored
			return err
		}
		u.Settings.CompactionSettings, err = mergeCompaction(stored.Settings.CompactionSettings, compaction)
		if err != nil {
			return err
		}
		if a, err = inTx.change(ctx, org, id, u); err != nil {
			return err
		}
		if a, err = inTx.askForAdded(ctx, org, a, added); err != nil { // after the change, because it may set other rules
			return err
		}
		if err := inTx.recordPolicy(ctx, org, policyChanged{AgentID: id,
			Was: stored.Settings.CompactionSettings, Now: a.Settings.CompactionSettings}); err != nil {
			return err
		}
		if u.FolderIDs != nil {
			if err := inTx.Files.SetFolders(ctx, org, id, u.FolderIDs, a.Limits()); err != nil {
				return err
			}
			if a, err = inTx.Agent(ctx, org, id); err != nil { // the folders may have skills
				return err
			}
		}
		if u.WindowLimit.Value != nil || a.WindowLimit != nil && len(u.FolderIDs) > 0 {
			if err := inTx.mustHoldPrompt(ctx, org, id); err != nil {
				return err
			}
		}
		_, err = inTx.Files.Trim(ctx, org, id, a.Limits())
		return err
	})
	return a, err
}

// AttachFolder attaches a folder to an agent. ErrInvalid if the tools for files then leave no room for any prompt in
// the agent's window.
func (s *Store) AttachFolder(ctx context.Context, org db.Org, a Agent, at files.Attachment) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if err := inTx.Files.Attach(ctx, org, at); err != nil || a.WindowLimit == nil {
			return err
		}
		return inTx.mustHoldPrompt(ctx, org, a.ID)
	})
}

// newSystem returns the instructions that an update sets: nil for the default ones, which a client may send back.
func (s *Store) newSystem(ctx context.Context, org db.Org, stored Agent, system *string) (*string, error) {
	if system == nil || *system == "" {
		return system, nil
	}
	tools, err := s.Definitions(ctx, org, stored)
	if err == nil && *system == stored.Instructions(tools) {
		return nil, nil
	}
	return system, err
}

// attach attaches the tools, identities and blocks of an update. It returns the tools that are new to the agent.
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

// ChangeSettings changes an agent's settings. change returns those to change, or nil for no change; it may be called
// twice.
func (s *Store) ChangeSettings(ctx context.Context, org db.Org, id string,
	change func(Agent) (*Settings, error)) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		a, err := inTx.Agent(ctx, org, id)
		if err != nil {
			return err
		}
		if changed, err := change(a); err != nil || changed == nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: id, Type: event.AgentUpdated, RefID: id}); err != nil {
			return err
		}
		if a, err = inTx.Agent(ctx, org, id); err != nil { // read again under the agent's lock
			return err
		}
		changed, err := change(a)
		if err != nil || changed == nil {
			return err
		}
		_, err = inTx.change(ctx, org, id, Update{Settings: *changed})
		return err
	})
}

func (s *Store) change(ctx context.Context, org db.Org, id string, u Update) (Agent, error) {
	err := db.Exec(ctx, s.DB, `
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
		        jsonb_set('{}', '{model_settings}', coalesce(
		            `+recall.MergedSettings("nullif(settings -> 'model_settings', 'null')", "@model_settings::jsonb")+`,
		            'null')) END,
		    last_run_completion = coalesce(@completion, last_run_completion),
		    last_run_duration_ms = coalesce(@duration, last_run_duration_ms),
		    last_stop_reason = coalesce(@stop, last_stop_reason), updated_at = now(),
		    system_changed_at = greatest(system_changed_at, now() + CASE WHEN @shown THEN interval '0' END)
		WHERE org = @org AND id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": id, "name": u.Name, "description": u.Description, "system": u.System,
			"timezone": u.Timezone, "model": u.Model, "embedding": u.Embedding, "metadata": u.Metadata, "tags": u.Tags,
			"hidden": u.Hidden, "set_window": u.WindowLimit.Set, "window": u.WindowLimit.Value,
			"set_max_files": u.MaxFilesOpen.Set, "max_files": u.MaxFilesOpen.Value,
			"set_view_chars": u.ViewChars.Set, "view_chars": u.ViewChars.Value, "settings": u.Settings,
			"unset": u.Unset, "model_settings": u.ModelSettings, "completion": u.LastRun.Completion,
			"duration": u.LastRun.DurationMS,
			"stop":     u.LastRun.StopReason, "shown": u.isShown()})
	if err != nil {
		return Agent{}, err
	}
	return s.Agent(ctx, org, id)
}
