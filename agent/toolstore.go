package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// maxTools bounds an organization's definitions.
const maxTools = 10_000

// PutTool creates a definition, or changes the one with the same name.
func (s *Store) PutTool(ctx context.Context, org db.Org, t CustomTool) (CustomTool, error) {
	var put CustomTool
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		n, err := db.One[int](ctx, tx, `
			SELECT count(*) FROM tools WHERE org = $1 AND name <> $2`, org, t.Name)
		if err == nil && n >= maxTools {
			err = db.Invalid("the organization has %d tools; it may have at most %d", n, maxTools)
		}
		if err != nil {
			return err
		}
		put, err = db.One[CustomTool](ctx, tx, `
			INSERT INTO tools AS t (org, name, description, json_schema, args_json_schema, source_code, source_type, tags,
			                        return_char_limit, pip_requirements, npm_requirements, default_requires_approval,
			                        enable_parallel_execution, metadata, made_by)
			VALUES (@org, @name, @description, @schema, @args, @source, @source_type, @tags, @limit, @pip, @npm, @approval,
			        @parallel, @metadata, @by)
			ON CONFLICT (org, name) DO UPDATE SET `+setTool+`, updated_at = excluded.updated_at
			RETURNING `+toolColumns, t.storedBy(ctx, org))
		if err != nil {
			return err
		}
		return s.With(tx).toolChanged(ctx, org, put, "")
	})
	return put, err
}

// setTool sets a definition's columns from the statement's arguments.
const setTool = `name = @name, description = @description, json_schema = @schema, args_json_schema = @args,
	source_code = @source, source_type = @source_type, tags = @tags, return_char_limit = @limit, pip_requirements = @pip,
	npm_requirements = @npm, default_requires_approval = @approval, enable_parallel_execution = @parallel,
	metadata = @metadata, changed_by = @by`

// toolChanged appends an event, in the transaction that changes a tool, to the log of each agent that has the tool or
// names it in its rules. oldName is the tool's former name, empty if the name stays.
func (s *Store) toolChanged(ctx context.Context, org db.Org, t CustomTool, oldName string) error {
	agents, err := db.All[string](ctx, s.DB, `
		SELECT agent_id FROM agent_tools WHERE org = $1 AND tool_key = $2
		UNION
		SELECT id FROM agents WHERE org = $1 AND $3 <> '' AND `+rulesName+`
		ORDER BY 1`, org, t.Key, oldName)
	if err != nil {
		return err
	}
	events := make([]event.Event, len(agents))
	for i, id := range agents {
		events[i] = event.Event{AgentID: id, Type: event.AgentUpdated, RefID: id}
	}
	_, err = event.Append(ctx, s.DB.(pgx.Tx), org, events...)
	return err
}

// ChangeTool changes a definition. If its name changes, rules that name it get the new name. ErrConflict if another
// definition has that name.
func (s *Store) ChangeTool(ctx context.Context, org db.Org, id string, change func(*CustomTool) error) (CustomTool,
	error) {
	var changed CustomTool
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		t, err := inTx.lockTool(ctx, org, id)
		if err != nil {
			return err
		}
		oldName := t.Name
		if err := change(&t); err != nil {
			return err
		}
		args := t.storedBy(ctx, org)
		args["key"] = t.Key
		changed, err = db.One[CustomTool](ctx, tx, `
			UPDATE tools t SET `+setTool+`, updated_at = now() WHERE t.org = @org AND t.key = @key RETURNING `+toolColumns, args)
		if db.Constraint(err) == "tools_name_key" {
			return db.Conflict("another tool has the name %s", t.Name)
		}
		if err != nil {
			return err
		}
		if changed.Name == oldName {
			return inTx.toolChanged(ctx, org, changed, "")
		}
		if err := inTx.toolChanged(ctx, org, changed, oldName); err != nil {
			return err
		}
		return inTx.rename(ctx, org, changed, oldName)
	})
	return changed, err
}

// lockTool locks and returns a definition: until the transaction ends, no other transaction changes, attaches or
// detaches it.
func (s *Store) lockTool(ctx context.Context, org db.Org, id string) (CustomTool, error) {
	t, err := db.One[CustomTool](ctx, s.DB, `
		SELECT `+toolColumns+` FROM tools t WHERE t.org = $1 AND t.id = $2 FOR UPDATE`, org, id)
	return t, orNoTool(err, id)
}

func orNoTool(err error, id string) error {
	return db.OrNotFound(err, "Tool with ID %s not found", db.Short(id))
}

// DeleteTool deletes a definition, detaches it from its agents, and removes it from their rules.
func (s *Store) DeleteTool(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		t, err := inTx.lockTool(ctx, org, id)
		if err != nil {
			return err
		}
		if err := inTx.toolChanged(ctx, org, t, t.Name); err != nil {
			return err
		}
		if err := inTx.changeRules(ctx, org, t.Name, func(rules json.RawMessage) (json.RawMessage, error) {
			return without(rules, t.Name)
		}); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "tools", `r.key = $2`, org, t.Key)
	})
}

// Tool returns a definition by its id.
func (s *Store) Tool(ctx context.Context, org db.Org, id string) (CustomTool, error) {
	t, err := db.One[CustomTool](ctx, s.DB, `
		SELECT `+toolColumns+` FROM tools t WHERE t.org = $1 AND t.id = $2`, org, id)
	return t, orNoTool(err, id)
}

// ToolIDs lists the ids of tools.
func (s *Store) ToolIDs(ctx context.Context, org db.Org, f ToolFilter, p db.Page) ([]string, error) {
	args := f.args(org)
	args["builtin"] = notNil(f.Builtin)
	listed, err := db.List[struct {
		ID        string    `db:"id"`
		Key       int64     `db:"key"`
		CreatedAt time.Time `db:"created_at"`
	}](ctx, s.DB, p, `
		SELECT t.id, t.key, t.created_at`+filteredTools+`
		UNION ALL
		SELECT b.id, b.ordinal, 'epoch' FROM unnest(@builtin::text[]) WITH ORDINALITY AS b (id, ordinal)`, args)
	ids := make([]string, len(listed))
	for i, t := range listed {
		ids[i] = t.ID
	}
	return ids, err
}

// CountTools counts the definitions that match a filter.
func (s *Store) CountTools(ctx context.Context, org db.Org, f ToolFilter) (int, error) {
	return db.One[int](ctx, s.DB, `SELECT count(*)`+filteredTools, f.args(org))
}

// ToolsNamed returns the definitions with one of these names or ids.
func (s *Store) ToolsNamed(ctx context.Context, org db.Org, names, ids []string) ([]CustomTool, error) {
	if len(names)+len(ids) == 0 {
		return nil, nil
	}
	return db.All[CustomTool](ctx, s.DB, `
		SELECT `+toolColumns+` FROM tools t
		WHERE t.org = $1 AND (t.name = ANY ($2) OR t.id = ANY ($3))
		ORDER BY t.key`, org, notNil(names), notNil(ids))
}

// AttachTool attaches a definition to an agent; if it is already attached, nothing changes. ErrNotFound if either does
// not exist.
func (s *Store) AttachTool(ctx context.Context, org db.Org, agentID, id string) error {
	return s.withAttachment(ctx, org, agentID, id, func(tx pgx.Tx, t CustomTool, attached bool) error {
		if attached {
			return nil
		}
		if err := appendUpdated(ctx, tx, org, agentID); err != nil {
			return err
		}
		if err := db.Exec(ctx, tx, `
			INSERT INTO agent_tools (org, agent_id, tool_key) VALUES ($1, $2, $3)`, org, agentID, t.Key); err != nil {
			return err
		}
		return s.With(tx).askForApproval(ctx, org, agentID, []int64{t.Key})
	})
}

// DetachTool detaches a definition from an agent; if it is not attached, nothing changes. ErrNotFound if either does
// not exist.
func (s *Store) DetachTool(ctx context.Context, org db.Org, agentID, id string) error {
	return s.withAttachment(ctx, org, agentID, id, func(tx pgx.Tx, t CustomTool, attached bool) error {
		if !attached {
			return nil
		}
		if err := appendUpdated(ctx, tx, org, agentID); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			DELETE FROM agent_tools WHERE org = $1 AND agent_id = $2 AND tool_key = $3`, org, agentID, t.Key)
	})
}

// withAttachment locks a definition, and calls do with it and whether it is attached to the agent.
func (s *Store) withAttachment(ctx context.Context, org db.Org, agentID, id string,
	do func(tx pgx.Tx, t CustomTool, attached bool) error) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		t, err := s.With(tx).lockTool(ctx, org, id)
		if err != nil {
			return err
		}
		attached, err := db.One[bool](ctx, tx, `
			SELECT EXISTS (SELECT FROM agent_tools WHERE org = $1 AND agent_id = $2 AND tool_key = $3)
			FROM agents WHERE org = $1 AND id = $2`, org, agentID, t.Key)
		if err != nil {
			return orNoAgent(err, agentID)
		}
		return do(tx, t, attached)
	})
}

// appendUpdated appends the event that an agent changed.
func appendUpdated(ctx context.Context, tx pgx.Tx, org db.Org, agentID string) error {
	_, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.AgentUpdated, RefID: agentID})
	return err
}

// askForApproval adds a rule requires_approval to an agent for each of these definitions that asks for one, unless the
// agent already has that rule.
func (s *Store) askForApproval(ctx context.Context, org db.Org, agentID string, tools []int64) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE agents
		SET settings = settings || jsonb_build_object('tool_rules', added.before || added.rules)
		FROM (SELECT a.id, coalesce(nullif(a.settings -> 'tool_rules', 'null'), '[]') AS before,
		             jsonb_agg(jsonb_build_object('type', 'requires_approval', 'tool_name', t.name) ORDER BY t.key) AS rules
		      FROM agents a
		      JOIN tools t ON t.org = a.org AND t.key = ANY ($3) AND t.default_requires_approval
		          AND NOT coalesce(a.settings -> 'tool_rules', '[]') @> jsonb_build_array(
		              jsonb_build_object('type', 'requires_approval', 'tool_name', t.name))
		      WHERE a.org = $1 AND t.org = $1 AND a.id = $2
		      GROUP BY a.id, a.settings) added
		WHERE agents.org = $1 AND agents.id = $2 AND added.id = agents.id`, org, agentID, tools)
	return db.Error(err)
}

// setTools makes these definitions an agent's only ones, and returns the keys of those that are new to it. ErrNotFound
// if one does not exist.
func (s *Store) setTools(ctx context.Context, org db.Org, agentID string, ids []string) (added []int64, err error) {
	for _, id := range slices.Sorted(slices.Values(ids)) { // all transactions that lock several use the same order
		if _, err := s.lockTool(ctx, org, id); err != nil {
			return nil, err
		}
	}
	if _, err := s.DB.Exec(ctx, `
		DELETE FROM agent_tools x USING tools t
		WHERE x.org = $1 AND t.org = $1 AND x.agent_id = $2 AND t.key = x.tool_key AND t.id <> ALL ($3)`,
		org, agentID, notNil(ids)); err != nil {
		return nil, db.Error(err)
	}
	return db.All[int64](ctx, s.DB, `
		INSERT INTO agent_tools (org, agent_id, tool_key)
		SELECT t.org, $2, t.key FROM tools t
		WHERE t.org = $1 AND t.id = ANY ($3)
		ORDER BY array_position($3, t.id)
		ON CONFLICT (org, agent_id, tool_key) DO NOTHING
		RETURNING tool_key`, org, agentID, notNil(ids))
}
