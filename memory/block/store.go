package block

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Store keeps blocks in Postgres.
type Store struct{ DB db.DB }

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store { return &Store{DB: tx} }

const columns = `b.key, b.id, b.label, b.description, b.value, b.limit_chars, b.read_only, b.hidden, b.tags, b.metadata,
	b.template, b.version, b.created_at, b.updated_at, b.template_key, ` + withoutAttacher

// withoutAttacher is the column attached_by of a block that is read independently of agents.
const withoutAttacher = "NULL::jsonb AS attached_by"

// attachedColumns are the columns of a block b for the agent of an attachment a.
var attachedColumns = strings.NewReplacer("b.label", "a.label", "b.read_only",
	"b.read_only OR a.read_only AS read_only",
	withoutAttacher, "a.attached_by").Replace(columns)

// attached are the attachments a of agent $2, each with its block b: the copy of user $3 where there is one, else the
// attached block itself.
const attached = ` FROM agent_blocks a JOIN blocks b ON b.org = a.org AND b.key = coalesce((
		SELECT u.key FROM blocks u WHERE u.org = $1 AND u.template_key = a.block_key AND u.user_key = $3), a.block_key)
	WHERE a.org = $1 AND b.org = $1 AND a.agent_id = $2`

// Create creates a block. author is the author of its first version. ErrInvalid if its label, a tag or its size breaks
// a rule.
func (s *Store) Create(ctx context.Context, org db.Org, author string, n New) (Block, error) {
	limit, value := cmp.Or(n.Limit, DefaultLimit), db.Clean(n.Value)
	if err := cmp.Or(checkLabel(n.Label), db.CheckTags(n.Tags), checkSize(n.Label, value, limit, author)); err != nil {
		return Block{}, err
	}
	if n.Metadata == nil {
		n.Metadata = json.RawMessage(`{}`)
	}
	var created Block
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		var err error
		created, err = db.One[Block](ctx, tx, `
			INSERT INTO blocks AS b (org, label, description, value, limit_chars, read_only, hidden, tags, metadata, template)
			VALUES (@org, @label, @description, @value, @limit, @read_only, @hidden, @tags, @metadata, @template)
			RETURNING `+columns,
			pgx.StrictNamedArgs{"org": org, "label": n.Label, "description": n.Description, "value": value, "limit": limit,
				"read_only": n.ReadOnly, "hidden": n.Hidden, "tags": db.Tags(n.Tags), "metadata": n.Metadata,
				"template": n.Template})
		if err != nil {
			return err
		}
		return s.With(tx).record(ctx, org, author, created)
	})
	return created, err
}

// record stores a block's current state as a version.
func (s *Store) record(ctx context.Context, org db.Org, author string, b Block) error {
	return db.Insert(ctx, s.DB, "block_versions", `
		INSERT INTO block_versions (block_key, version, org, author, label, description, value, limit_chars, read_only,
		                            provenance)
		VALUES (@key, @version, @org, @author, @label, @description, @value, @limit, @read_only, @provenance)`,
		pgx.StrictNamedArgs{"key": b.Key, "version": b.Version, "org": org, "author": author, "label": b.Label,
			"description": b.Description, "value": b.Value, "limit": b.Limit, "read_only": b.ReadOnly,
			"provenance": db.ProvenanceOf(ctx)})
}

// Block returns a block by its id.
func (s *Store) Block(ctx context.Context, org db.Org, id string) (Block, error) {
	b, err := db.One[Block](ctx, s.DB, `SELECT `+columns+` FROM blocks b WHERE b.org = $1 AND b.id = $2`, org, id)
	return b, db.OrNotFound(err, "Block with ID %s not found", id)
}

// Filter narrows a list of blocks. An empty field does not narrow it. The …Contains fields ignore case.
type Filter struct {
	Label            string // exact
	LabelContains    string
	ValueContains    string
	DescriptContains string
	TemplateName     string
	Templates        *bool
	Tags             []string
	AllTags          bool
	Hidden           bool  // include hidden blocks
	AgentsMore       *int  // attached to more agents than this
	AgentsFewer      *int  // attached to fewer agents than this
	Agents           []int // attached to exactly one of these numbers of agents
	Identity         string
	IdentifierKeys   []string // the block must have an identity with one of these keys; nil: any block
}

const filtered = ` FROM blocks b
	WHERE b.org = @org AND b.user_key IS NULL AND @label IN ('', b.label) AND (@hidden OR NOT b.hidden)
	  AND (@label_contains = '' OR strpos(lower(b.label), lower(@label_contains)) > 0)
	  AND (@value_contains = '' OR strpos(lower(b.value), lower(@value_contains)) > 0)
	  AND (@description_contains = '' OR strpos(lower(b.description), lower(@description_contains)) > 0)
	  AND @template_name IN ('', b.template ->> 'template_name')
	  AND (@templates::boolean IS NULL OR coalesce((b.template ->> 'is_template')::boolean, false) = @templates)
	  AND (cardinality(@tags::text[]) = 0 OR CASE WHEN @all_tags THEN b.tags @> @tags ELSE b.tags && @tags END)
	  AND (@more::int IS NULL AND @fewer::int IS NULL AND @agents::int[] IS NULL OR (
		SELECT count(*) > coalesce(@more, -1) AND count(*) < coalesce(@fewer, 2147483647)
		   AND (@agents::int[] IS NULL OR count(*) = ANY (@agents))
		FROM agent_blocks a WHERE a.org = @org AND a.block_key = b.key))
	  AND (@identity = '' AND @identifiers::text[] IS NULL OR EXISTS (
		SELECT FROM block_identities x JOIN identities i ON i.org = x.org AND i.key = x.identity_key
		WHERE x.org = @org AND i.org = @org AND x.block_key = b.key AND @identity IN ('', i.id)
		  AND (@identifiers::text[] IS NULL OR i.identifier_key = ANY (@identifiers))))`

func (f Filter) args(org db.Org) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "label": f.Label, "label_contains": f.LabelContains,
		"value_contains": f.ValueContains, "description_contains": f.DescriptContains, "template_name": f.TemplateName,
		"templates": f.Templates, "tags": db.Tags(f.Tags), "all_tags": f.AllTags, "hidden": f.Hidden,
		"more": f.AgentsMore, "fewer": f.AgentsFewer, "agents": f.Agents,
		"identity": f.Identity, "identifiers": f.IdentifierKeys}
}

// List lists the blocks that match a filter.
func (s *Store) List(ctx context.Context, org db.Org, f Filter, p db.Page) ([]Block, error) {
	return db.List[Block](ctx, s.DB, p, `SELECT `+columns+filtered, f.args(org))
}

// Count returns how many blocks match a filter.
func (s *Store) Count(ctx context.Context, org db.Org, f Filter) (int, error) {
	return db.One[int](ctx, s.DB, `SELECT count(*)`+filtered, f.args(org))
}

// Delete deletes a block with its versions, and detaches it from its agents.
func (s *Store) Delete(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		b, err := txStore.lock(ctx, org, id)
		if err != nil {
			return err
		}
		if err := txStore.appendToAgents(ctx, org, b, event.BlockDetached); err != nil {
			return err
		}
		copies := `SELECT u.key FROM blocks u WHERE u.org = $1 AND u.template_key = $2`
		if _, err := db.Delete(ctx, tx, "block_versions", `r.block_key = $2 OR r.block_key IN (`+copies+`)`, org,
			b.Key); err != nil {
			return err
		}
		if _, err := db.Delete(ctx, tx, "blocks", `r.template_key = $2`, org, b.Key); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "blocks", `r.key = $2`, org, b.Key)
	})
}

// lock locks a block and returns it. Until the transaction ends, no other transaction changes, attaches or detaches the
// block.
func (s *Store) lock(ctx context.Context, org db.Org, id string) (Block, error) {
	b, err := db.One[Block](ctx, s.DB, `
		SELECT `+columns+` FROM blocks b WHERE b.org = $1 AND b.id = $2 FOR UPDATE`, org, id)
	return b, db.OrNotFound(err, "Block with ID %s not found", id)
}

// appendToAgents appends an event to the log of each agent that has the block.
func (s *Store) appendToAgents(ctx context.Context, org db.Org, b Block, eventType event.Type) error {
	agents, err := db.All[string](ctx, s.DB, `
		SELECT agent_id FROM agent_blocks WHERE org = $1 AND block_key = $2 ORDER BY agent_id`, org,
		*cmp.Or(b.TemplateKey, &b.Key))
	if err != nil {
		return err
	}
	events := make([]event.Event, len(agents))
	for i, agent := range agents {
		events[i] = event.Event{AgentID: agent, Type: eventType, RefID: b.ID}
	}
	_, err = event.Append(ctx, s.DB.(pgx.Tx), org, events...)
	return err
}

// Attach attaches a block to an agent. Attaching it again changes nothing. ErrConflict if the agent has another block
// with that label; ErrNotFound if the block or the agent does not exist.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, id string) error {
	return s.attach(ctx, org, agentID, id, false)
}

// AttachReadOnly is Attach for a block that the agent may not change.
func (s *Store) AttachReadOnly(ctx context.Context, org db.Org, agentID, id string) error {
	return s.attach(ctx, org, agentID, id, true)
}

func (s *Store) attach(ctx context.Context, org db.Org, agentID, id string, readOnly bool) error {
	return s.withAttachment(ctx, org, agentID, id, func(tx pgx.Tx, b Block, attached bool) error {
		if attached {
			return nil
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.BlockAttached,
			RefID: id}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO agent_blocks (agent_id, block_key, org, label, read_only, attached_by) VALUES ($1, $2, $3, $4, $5, $6)`,
			agentID, b.Key, org, b.Label, readOnly, db.ProvenanceOf(ctx))
		return labelError(err, b.Label)
	})
}

// withAttachment locks a block and calls do with it, and with whether it is attached to an agent. ErrNotFound if the
// block or the agent does not exist.
func (s *Store) withAttachment(ctx context.Context, org db.Org, agentID, id string,
	do func(tx pgx.Tx, b Block, attached bool) error) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		b, err := s.With(tx).lock(ctx, org, id)
		if err != nil {
			return err
		}
		attached, err := db.One[bool](ctx, tx, `
			SELECT EXISTS (SELECT FROM agent_blocks WHERE org = $1 AND agent_id = $2 AND block_key = $3)
			FROM agents WHERE org = $1 AND id = $2`, org, agentID, b.Key)
		if err != nil {
			return db.OrNotFound(err, "Agent with ID %s not found", agentID)
		}
		return do(tx, b, attached)
	})
}

// labelError turns the error of a label that an agent would have twice into an ErrConflict that says what to do. For
// any other error it returns db.Error.
func labelError(err error, label string) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if ok && db.Constraint(pg) == "agent_blocks_label_key" {
		return db.Conflict("the agent has another block with the label '%s' already: give this one another label, or "+
			"have that one detached", label)
	}
	return db.Error(err)
}

// Detach detaches a block from an agent. ErrNotFound if the block or the agent does not exist, or the agent does not
// have the block.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, id string) error {
	return s.withAttachment(ctx, org, agentID, id, func(tx pgx.Tx, b Block, attached bool) error {
		if !attached {
			return db.NotFound("Block %s is not attached to agent %s", id, agentID)
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.BlockDetached,
			RefID: id}); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			DELETE FROM agent_blocks WHERE org = $1 AND agent_id = $2 AND block_key = $3`, org, agentID, b.Key)
	})
}

// Set attaches the given blocks to an agent, and detaches all others.
func (s *Store) Set(ctx context.Context, org db.Org, agentID string, ids []string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		attached, err := txStore.OfAgent(ctx, org, agentID)
		if err != nil {
			return err
		}
		for _, b := range attached {
			if !slices.Contains(ids, b.ID) {
				if err := txStore.Detach(ctx, org, agentID, b.ID); err != nil {
					return err
				}
			}
		}
		for _, id := range ids {
			if err := txStore.Attach(ctx, org, agentID, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// OfAgent lists the blocks of an agent, first attached first. If ctx works for a user, that user's copies stand in
// place of the blocks that they were made of.
func (s *Store) OfAgent(ctx context.Context, org db.Org, agentID string) ([]Block, error) {
	return db.All[Block](ctx, s.DB, `
		SELECT `+attachedColumns+attached+`
		ORDER BY a.attached_at, a.block_key`, org, agentID, db.UserOf(ctx))
}

// Labelled returns the agent's block with a label, as OfAgent does.
func (s *Store) Labelled(ctx context.Context, org db.Org, agentID, label string) (Block, error) {
	b, err := db.One[Block](ctx, s.DB, `
		SELECT `+attachedColumns+attached+` AND a.label = $4`, org, agentID, db.UserOf(ctx), label)
	return b, db.OrNotFound(err, "No block with label '%s' is attached to agent %s", label, agentID)
}

// Agents lists the ids of the agents that have a block, in the order in which it was attached to them.
func (s *Store) Agents(ctx context.Context, org db.Org, id string) ([]string, error) {
	if _, err := s.Block(ctx, org, id); err != nil {
		return nil, err
	}
	return db.All[string](ctx, s.DB, `
		SELECT a.agent_id FROM agent_blocks a JOIN blocks b ON b.org = a.org AND b.key = a.block_key
		WHERE a.org = $1 AND b.id = $2
		ORDER BY a.attached_at, a.agent_id`, org, id)
}
