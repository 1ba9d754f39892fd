package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Restored is an agent that a file carries with all it has. Its Messages, Blocks and folders follow.
type Restored struct {
	ID string // agent- and a UUID
	New
	CreatedAt, UpdatedAt time.Time
}

// RestoreAgent creates an agent under its id, without conversations and events. ErrInvalid if a value breaks a rule.
func (s *Store) RestoreAgent(ctx context.Context, org db.Org, r Restored) error {
	if err := cmp.Or(checkName(r.Name), db.CheckTags(r.Tags), checkLimits(r.WindowLimit, r.MaxFilesOpen,
		r.ViewChars)); err != nil {
		return err
	}
	var err error
	if r.Settings.CompactionSettings, err = mergeCompaction(nil, r.Settings.CompactionSettings); err != nil {
		return err
	}
	return db.Exec(ctx, s.DB, `
		INSERT INTO agents (id, org, name, agent_type, description, metadata, system, tags, timezone, model, embedding,
		                    context_window_limit, max_files_open, per_file_view_window_char_limit, hidden, settings,
		                    created_at, updated_at)
		VALUES (@id, @org, @name, @type, @description, @metadata, @system, @tags, @timezone, @model, @embedding,
		        @window, @max_files, @view_chars, @hidden, @settings, @created, @updated)`,
		pgx.StrictNamedArgs{"id": r.ID, "org": org, "name": r.Name, "type": cmp.Or(r.Type, DefaultType),
			"description": r.Description, "metadata": r.Metadata, "system": r.System, "tags": notNil(r.Tags),
			"timezone": cmp.Or(r.Timezone, "UTC"), "model": r.Model, "embedding": r.Embedding, "window": r.WindowLimit,
			"max_files": r.MaxFilesOpen, "view_chars": r.ViewChars, "hidden": r.Hidden, "settings": r.Settings,
			"created": r.CreatedAt, "updated": r.UpdatedAt})
}
