package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// SubagentDefinition describes sub-agents of an agent, which are started by its name.
type SubagentDefinition struct {
	Name        string    `db:"name" json:"name" example:"scout"`
	Description string    `db:"description" json:"description" doc:"What it is for: the agent's model reads it."`
	Given       Given     `db:"definition" json:"-"`
	CreatedAt   time.Time `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time `db:"updated_at" json:"updated_at"`
}

// Given holds the grants and settings that a definition gives to its sub-agents. A nil or empty field means the same as
// for a sub-agent without a definition; nil Tools grant all tools of the parent.
type Given struct {
	Mode   string          `json:"mode,omitempty"` // blank or brief; empty: blank
	Prompt string          `json:"prompt,omitempty"`
	Tools  []string        `json:"tools,omitzero"`
	Skills []string        `json:"skills,omitempty"` // names of the parent's that begin the sub-agent's conversation
	Policy json.RawMessage `json:"policy,omitempty"` // compaction settings
	Model  *string         `json:"model,omitempty"`
	Window *int            `json:"context_window_limit,omitempty"`
	Grants GivenGrants     `json:"grants"`
}

// GivenGrants are the memories of the parent that the sub-agents of a definition get. Blocks are named by label or id,
// folders by name or id, files as folder/file.
type GivenGrants struct {
	Default    bool         `json:"default" doc:"AGENTS, TOOLS and SOUL: blocks and memory files, to read."`
	Blocks     []GivenGrant `json:"blocks" nullable:"false"`
	Folders    []string     `json:"folders" nullable:"false" doc:"Names or ids, of the parent's."`
	Files      []string     `json:"files" nullable:"false" doc:"Of brief: files (folder/name) that are open at first."`
	MemoryTree *GivenGrant  `json:"memory_tree" doc:"The parent's memory files."`
}

// GivenGrant is one of GivenGrants.
type GivenGrant struct {
	ID       string `json:"id,omitempty" doc:"Of a block its label or id."`
	ReadOnly bool   `json:"read_only"`
}

// Bounds of definitions.
const (
	maxDefinitions      = 50
	maxDescriptionChars = 1_024 // as that of a skill
	maxPromptChars      = 100_000
)

var definitionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// check returns ErrInvalid for a definition that breaks a rule.
func (d SubagentDefinition) check() error {
	switch {
	case !definitionName.MatchString(d.Name):
		return db.Invalid("the name %q is not allowed: it must have from 1 to 64 letters, digits, '_' and '-', and begin "+
			"with a letter or a digit", db.Short(d.Name))
	case utf8.RuneCountInString(d.Description) > maxDescriptionChars:
		return db.Invalid("the description has more than %d characters", maxDescriptionChars)
	case utf8.RuneCountInString(d.Given.Prompt) > maxPromptChars:
		return db.Invalid("the prompt has more than %d characters", maxPromptChars)
	case !slices.Contains([]string{"", "blank", "brief"}, d.Given.Mode):
		return db.Invalid("mode is %q; it must be blank or brief: a fork has what its parent has", db.Short(d.Given.Mode))
	case d.Given.Mode != "brief" && len(d.Given.Grants.Files) > 0:
		return db.Invalid("grants.files are for the mode brief")
	}
	_, err := mergeCompaction(nil, d.Given.Policy)
	return cmp.Or(err, checkLimits(d.Given.Window, nil, nil), db.CheckUTF8("the description", d.Description),
		db.CheckUTF8("the prompt", d.Given.Prompt))
}

const definitionColumns = `s.name, s.description, s.definition, s.created_at, s.updated_at`

// SubagentDefinitions returns an agent's definitions of sub-agents, by name.
func (s *Store) SubagentDefinitions(ctx context.Context, org db.Org, agentID string) ([]SubagentDefinition, error) {
	return db.All[SubagentDefinition](ctx, s.DB, `
		SELECT `+definitionColumns+` FROM subagents s JOIN agents a ON a.org = s.org AND a.key = s.agent_key
		WHERE s.org = $1 AND a.id = $2 ORDER BY s.name, s.key`, org, agentID)
}

// SubagentDefinition returns an agent's definition by its name. ErrNotFound if there is none.
func (s *Store) SubagentDefinition(ctx context.Context, org db.Org, agentID, name string) (SubagentDefinition, error) {
	d, err := db.One[SubagentDefinition](ctx, s.DB, `
		SELECT `+definitionColumns+` FROM subagents s JOIN agents a ON a.org = s.org AND a.key = s.agent_key
		WHERE s.org = $1 AND a.id = $2 AND s.name = $3`, org, agentID, name)
	return d, db.OrNotFound(err, "Agent %s has no definition of sub-agents %q", agentID, db.Short(name))
}

// PutSubagentDefinition creates an agent's definition, or replaces the one of its name. ErrInvalid if it breaks a rule
// or is one too many. Its tools and grants are checked when a sub-agent is started.
func (s *Store) PutSubagentDefinition(ctx context.Context, org db.Org, agentID string, d SubagentDefinition) (
	put SubagentDefinition, err error) {
	if err := d.check(); err != nil {
		return put, err
	}
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		a, err := s.With(tx).Agent(ctx, org, agentID)
		if err != nil {
			return err
		}
		if err := appendUpdated(ctx, tx, org, a.ID); err != nil { // locks the agent
			return err
		}
		n, err := db.One[int](ctx, tx, `
			SELECT count(*)::integer FROM subagents WHERE org = $1 AND agent_key = $2 AND name <> $3`, org, a.Key, d.Name)
		if err == nil && n >= maxDefinitions {
			err = db.Invalid("the agent has %d definitions of sub-agents, which is as many as it may have", n)
		}
		if err != nil {
			return err
		}
		put, err = db.One[SubagentDefinition](ctx, tx, `
			INSERT INTO subagents AS s (org, agent_key, name, description, definition) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org, agent_key, name) DO UPDATE
			SET description = excluded.description, definition = excluded.definition, updated_at = excluded.updated_at
			RETURNING `+definitionColumns, org, a.Key, d.Name, db.Clean(d.Description), d.Given)
		return err
	})
	return put, err
}

// RestoreSubagentDefinition creates a definition of an imported agent, without an event. Zero times are now.
func (s *Store) RestoreSubagentDefinition(ctx context.Context, org db.Org, agentID string, d SubagentDefinition) error {
	if err := d.check(); err != nil {
		return err
	}
	return db.Exec(ctx, s.DB, `
		INSERT INTO subagents (org, agent_key, name, description, definition, created_at, updated_at)
		SELECT @org, key, @name, @description, @given, @created::timestamptz, @updated::timestamptz
		FROM agents WHERE org = @org AND id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": agentID, "name": d.Name, "description": db.Clean(d.Description),
			"given": d.Given, "created": orNow(d.CreatedAt), "updated": orNow(d.UpdatedAt)})
}

// orNow returns a time, or now if it is zero.
func orNow(at time.Time) time.Time {
	if at.IsZero() {
		return time.Now()
	}
	return at
}

// DeleteSubagentDefinition deletes an agent's definition. Sub-agents that were started by its name stay.
func (s *Store) DeleteSubagentDefinition(ctx context.Context, org db.Org, agentID, name string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := s.With(tx).SubagentDefinition(ctx, org, agentID, name); err != nil {
			return err
		}
		if err := appendUpdated(ctx, tx, org, agentID); err != nil {
			return err
		}
		_, err := db.Delete(ctx, tx, "subagents",
			`r.agent_key = (SELECT key FROM agents WHERE org = $1 AND id = $2) AND r.name = $3`, org, agentID, name)
		return err
	})
}
