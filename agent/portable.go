package agent

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Restored is an agent from a file with all its parts. Its messages, blocks and folders are restored afterwards.
type Restored struct {
	ID string // agent- and a UUID
	New
	LastRun
	CreatedAt, UpdatedAt time.Time
}

// RestoreAgent creates an agent under its old id, without conversations and events. ErrInvalid if a value breaks a
// rule.
func (s *Store) RestoreAgent(ctx context.Context, org db.Org, r Restored) error {
	if err := cmp.Or(checkName(r.Name), db.CheckTags(r.Tags), checkLimits(r.WindowLimit, r.MaxFilesOpen,
		r.ViewChars)); err != nil {
		return err
	}
	var err error
	if r.Settings.CompactionSettings, err = mergeCompaction(nil, r.Settings.CompactionSettings); err != nil {
		return err
	}
	return db.Insert(ctx, s.DB, "agents", `
		INSERT INTO agents (id, org, name, agent_type, description, metadata, system, tags, timezone, model, embedding,
		                    context_window_limit, max_files_open, per_file_view_window_char_limit, hidden, settings,
		                    last_run_completion, last_run_duration_ms, last_stop_reason, created_at, updated_at,
		                    system_changed_at, depth)
		VALUES (@id, @org, @name, @type, @description, @metadata, @system, @tags, @timezone, @model, @embedding,
		        @window, @max_files, @view_chars, @hidden, @settings, @completion, @duration, @stop, @created,
		        @updated, @updated, @depth)`,
		pgx.StrictNamedArgs{"id": r.ID, "org": org, "name": r.Name, "type": cmp.Or(r.Type, DefaultType),
			"description": r.Description, "metadata": r.Metadata, "system": r.System, "tags": notNil(r.Tags),
			"timezone": cmp.Or(r.Timezone, "UTC"), "model": r.Model, "embedding": r.Embedding, "window": r.WindowLimit,
			"max_files": r.MaxFilesOpen, "view_chars": r.ViewChars, "hidden": r.Hidden, "settings": r.Settings,
			"completion": r.Completion, "duration": r.DurationMS, "stop": r.StopReason,
			"created": r.CreatedAt, "updated": r.UpdatedAt, "depth": r.Depth})
}

// PortableTool is a definition as an agent's file carries it, with the time at which it was attached.
type PortableTool struct {
	CustomTool
	AttachedAt time.Time `db:"attached_at"`
}

// ExportTools lists the definitions attached to an agent, the first attached first.
func (s *Store) ExportTools(ctx context.Context, org db.Org, agentID string) ([]PortableTool, error) {
	return db.All[PortableTool](ctx, s.DB, `
		SELECT `+toolColumns+`, x.attached_at
		FROM agent_tools x JOIN tools t ON t.org = x.org AND t.key = x.tool_key
		WHERE x.org = $1 AND x.agent_id = $2
		ORDER BY x.attached_at, t.key`, org, agentID)
}

// RestoreTool creates a definition under its id, and with its times if it has them. If the organization already has a
// definition with this name, that one is used; with override it is changed to be like t. RestoreTool returns the id of
// the definition in use.
func (s *Store) RestoreTool(ctx context.Context, org db.Org, t CustomTool, override bool) (id string, err error) {
	present, err := s.ToolsNamed(ctx, org, []string{t.Name}, nil)
	if err != nil {
		return "", err
	}
	if len(present) > 0 && (!override || reflect.DeepEqual(present[0].args(org), t.args(org))) {
		id, err := s.keepName(ctx, org, present[0])
		if err == nil || !errors.Is(err, db.ErrNotFound) {
			return id, err
		}
		present = nil // it was deleted or renamed meanwhile
	}
	put, err := s.PutTool(ctx, org, t)
	if err != nil || len(present) > 0 || t.ID == "" {
		return put.ID, err
	}
	return t.ID, db.Exec(ctx, s.DB, `
		UPDATE tools
		SET id = $3, created_at = $4, updated_at = $5, former_names = $6, made_by = $7, changed_by = $8
		WHERE org = $1 AND key = $2`,
		org, put.Key, t.ID, t.CreatedAt, t.UpdatedAt, notNil(t.FormerNames), t.MadeBy, t.ChangedBy)
}

// keepName locks a definition and returns its id: until the transaction ends, it is neither deleted nor renamed.
// ErrNotFound if its name has already changed.
func (s *Store) keepName(ctx context.Context, org db.Org, t CustomTool) (string, error) {
	return db.One[string](ctx, s.DB, `
		SELECT id FROM tools WHERE org = $1 AND key = $2 AND name = $3 FOR SHARE`, org, t.Key, t.Name)
}

// RestoreAttachment attaches a definition to a restored agent, as of a given time.
func (s *Store) RestoreAttachment(ctx context.Context, org db.Org, agentID, toolID string, at time.Time) error {
	return db.Exec(ctx, s.DB, `
		INSERT INTO agent_tools (org, agent_id, tool_key, attached_at)
		SELECT org, $2, key, $4 FROM tools WHERE org = $1 AND id = $3`, org, agentID, toolID, at)
}

// PortableIdentity is an identity as an agent's file carries it. It lists only agents, blocks and conversations that
// are in the file.
type PortableIdentity struct {
	Identity
	ConversationIDs []string    `db:"conversation_ids" json:"conversation_ids"`
	ArchiveIDs      []string    `db:"archive_ids" json:"archive_ids"`   // the user's own
	FolderIDs       []string    `db:"folder_ids" json:"folder_ids"`     // the user's own
	BlockCopies     []BlockCopy `db:"block_copies" json:"block_copies"` // the user's own
	Trees           []UserTree  `db:"trees" json:"trees"`               // the user's own

	CreatedAt time.Time `db:"created" json:"created_at"`
	UpdatedAt time.Time `db:"updated_at" json:"updated_at"`
}

// BlockCopy is a user's copy of a block, by the ids of both.
type BlockCopy struct {
	BlockID    string `json:"block_id"`
	TemplateID string `json:"template_id"`
}

// UserTree is the tree of memory files that an agent keeps for a user.
type UserTree struct {
	AgentID string `json:"agent_id"`
	TreeID  string `json:"tree_id"`
}

// What an agent keeps for identity i: archives, folders, copies u of blocks b, and a tree.
const (
	userArchives = `FROM agent_archives a JOIN archives c ON c.org = @org AND c.key = a.archive_key
		WHERE a.org = @org AND a.agent_id = @agent AND c.user_key = i.key AND c.deleted_at IS NULL`
	userFolders = `FROM agent_folders a JOIN folders d ON d.org = @org AND d.key = a.folder_key
		WHERE a.org = @org AND a.agent_id = @agent AND d.user_key = i.key AND d.deleted_at IS NULL`
	userBlocks = `FROM agent_blocks a JOIN blocks b ON b.org = @org AND b.key = a.block_key
		JOIN blocks u ON u.org = @org AND u.template_key = b.key
		WHERE a.org = @org AND a.agent_id = @agent AND u.user_key = i.key`
	userTrees = `FROM user_memory_trees x JOIN memory_trees t ON t.org = @org AND t.key = x.tree_key
		WHERE x.org = @org AND x.agent_id = @agent AND x.user_key = i.key`
)

// identityConversations selects an agent's conversations with identity i, including those that were reset.
const identityConversations = `
	SELECT c.id
	FROM agents a
	JOIN conversation_identities x ON x.org = @org AND x.agent_key = a.key
	JOIN conversations c ON c.org = @org AND c.agent_key = x.agent_key AND c.key = x.conversation_key
	WHERE a.org = @org AND a.id = @agent AND x.identity_key = i.key AND (c.deleted_at IS NULL OR c.reset_at IS NOT NULL)`

// ExportIdentities lists the identities of an agent, of its blocks and of its conversations, the oldest first.
func (s *Store) ExportIdentities(ctx context.Context, org db.Org, agentID string) ([]PortableIdentity, error) {
	return db.All[PortableIdentity](ctx, s.DB, `
		SELECT i.key, i.id, i.identifier_key, i.name, i.identity_type, i.properties, i.created_at, i.created_at AS created,
		       i.updated_at, i.made_by, i.changed_by,
		       ARRAY(SELECT x.agent_id FROM agent_identities x
		             WHERE x.org = @org AND x.identity_key = i.key AND x.agent_id = @agent) AS agent_ids,
		       ARRAY(SELECT b.id
		             FROM block_identities x
		             JOIN blocks b ON b.org = @org AND b.key = x.block_key
		             JOIN agent_blocks a ON a.org = @org AND a.block_key = b.key AND a.agent_id = @agent
		             WHERE x.org = @org AND x.identity_key = i.key ORDER BY b.id) AS block_ids,
		       ARRAY(`+identityConversations+` ORDER BY c.id) AS conversation_ids,
		       ARRAY(SELECT c.id `+userArchives+` ORDER BY c.id) AS archive_ids,
		       ARRAY(SELECT d.id `+userFolders+` ORDER BY d.id) AS folder_ids,
		       coalesce((SELECT json_agg(json_build_object('block_id', u.id, 'template_id', b.id) ORDER BY u.id) `+
		userBlocks+`), '[]') AS block_copies,
		       coalesce((SELECT json_agg(json_build_object('agent_id', x.agent_id, 'tree_id', t.id) ORDER BY t.id) `+
		userTrees+`), '[]') AS trees
		FROM identities i
		WHERE i.org = @org AND (
			EXISTS (SELECT FROM agent_identities x WHERE x.org = @org AND x.identity_key = i.key AND x.agent_id = @agent)
			OR EXISTS (`+identityConversations+`)
			OR EXISTS (SELECT `+userArchives+`) OR EXISTS (SELECT `+userFolders+`)
			OR EXISTS (SELECT `+userBlocks+`) OR EXISTS (SELECT `+userTrees+`)
			OR EXISTS (
				SELECT FROM block_identities x JOIN agent_blocks a ON a.org = @org AND a.block_key = x.block_key
				WHERE x.org = @org AND x.identity_key = i.key AND a.agent_id = @agent))
		ORDER BY i.key`, pgx.StrictNamedArgs{"org": org, "agent": agentID})
}

// RestoreIdentity creates an identity under its id, and links it to its agents, blocks and conversations, which must be
// restored already. If the organization already has an identity with this identifier key, that one is linked instead,
// is otherwise unchanged, and is returned.
func (s *Store) RestoreIdentity(ctx context.Context, org db.Org, i PortableIdentity) (present *Identity, err error) {
	existing, err := s.Identities(ctx, org, IdentityFilter{IdentifierKey: i.IdentifierKey}, db.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	change := func(stored *Identity) error {
		stored.AgentIDs = append(stored.AgentIDs, i.AgentIDs...)
		stored.BlockIDs = append(stored.BlockIDs, i.BlockIDs...)
		return nil
	}
	if len(existing) > 0 {
		if _, err = s.ChangeIdentity(ctx, org, existing[0].ID, change); err != nil {
			return nil, err
		}
		return &existing[0], s.restoreWith(ctx, org, existing[0].Key, i)
	}
	created, err := s.ChangeIdentity(ctx, org, "", func(stored *Identity) error {
		*stored = i.Identity
		stored.Key = 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = db.Exec(ctx, s.DB, `
		UPDATE identities
		SET id = $3, created_at = $4, updated_at = $5, made_by = $6, changed_by = $7
		WHERE org = $1 AND key = $2`,
		org, created.Key, i.ID, i.CreatedAt, i.UpdatedAt, i.MadeBy, i.ChangedBy)
	if err != nil {
		return nil, err
	}
	return nil, s.restoreWith(ctx, org, created.Key, i)
}

// restoreWith gives an identity its restored conversations, archives, folders, copies of blocks, and trees.
func (s *Store) restoreWith(ctx context.Context, org db.Org, identity int64, i PortableIdentity) error {
	var batch pgx.Batch
	batch.Queue(`
		INSERT INTO conversation_identities (org, agent_key, conversation_key, identity_key)
		SELECT org, agent_key, key, $2 FROM conversations WHERE org = $1 AND id = ANY ($3)`, org, identity,
		i.ConversationIDs)
	batch.Queue(`UPDATE archives SET user_key = $2 WHERE org = $1 AND id = ANY ($3)`, org, identity, i.ArchiveIDs)
	batch.Queue(`
		UPDATE agent_archives a SET user_key = $2, is_default = false FROM archives c
		WHERE a.org = $1 AND c.org = $1 AND c.key = a.archive_key AND c.id = ANY ($3)`, org, identity, i.ArchiveIDs)
	batch.Queue(`UPDATE folders SET user_key = $2 WHERE org = $1 AND id = ANY ($3)`, org, identity, i.FolderIDs)
	batch.Queue(`
		UPDATE agent_folders a SET user_key = $2 FROM folders d
		WHERE a.org = $1 AND d.org = $1 AND d.key = a.folder_key AND d.id = ANY ($3)`, org, identity, i.FolderIDs)
	for _, b := range i.BlockCopies {
		batch.Queue(`
			UPDATE blocks u SET user_key = $2, template_key = b.key FROM blocks b
			WHERE u.org = $1 AND b.org = $1 AND u.id = $3 AND b.id = $4`, org, identity, b.BlockID, b.TemplateID)
	}
	for _, t := range i.Trees {
		batch.Queue(`
			INSERT INTO user_memory_trees (org, agent_id, user_key, tree_key)
			SELECT org, $3, $2, key FROM memory_trees WHERE org = $1 AND id = $4`, org, identity, t.AgentID, t.TreeID)
	}
	return db.Error(s.DB.SendBatch(ctx, &batch).Close())
}

// Records counts what an agent has but its file does not carry.
type Records struct {
	Handovers int `db:"handovers"`
	Waiting   int `db:"waiting"` // updates of hand-overs that wait for an operator's approval
	Children  int `db:"children"`
	Flushes   int `db:"flushes"`
}

// Records counts what an agent has but its file does not carry.
func (s *Store) Records(ctx context.Context, org db.Org, agentID string) (Records, error) {
	return db.One[Records](ctx, s.DB, `
		WITH a AS (SELECT key FROM agents WHERE org = $1 AND id = $2),
		     h AS (SELECT h.key FROM handovers h JOIN a ON h.org = $1 AND h.agent_key = a.key)
		SELECT (SELECT count(*) FROM h) AS handovers,
		       (SELECT count(*) FROM handover_updates u JOIN h ON u.handover_key = h.key
		        WHERE u.org = $1 AND u.status = 'proposed') AS waiting,
		       (SELECT count(*) FROM children c JOIN a ON c.org = $1 AND c.parent_key = a.key) AS children,
		       (SELECT count(*) FROM flushes f JOIN a ON f.org = $1 AND f.agent_key = a.key) AS flushes`, org, agentID)
}
