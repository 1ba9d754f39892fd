package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// CustomTool is the definition of a tool that a program of the organization runs. Schema is an object with name,
// description, parameters and perhaps strict. Loci does not use the other fields; it keeps them for clients.
type CustomTool struct {
	Key              int64           `db:"key"`
	ID               string          `db:"id"`
	Name             string          `db:"name"`
	Description      string          `db:"description"`
	Schema           json.RawMessage `db:"json_schema"`
	ArgsSchema       json.RawMessage `db:"args_json_schema"`
	Source           *string         `db:"source_code"`
	SourceType       string          `db:"source_type"`
	Tags             []string        `db:"tags"`
	ReturnCharLimit  int             `db:"return_char_limit"`
	Pip              json.RawMessage `db:"pip_requirements"`
	NPM              json.RawMessage `db:"npm_requirements"`
	RequiresApproval *bool           `db:"default_requires_approval"`
	Parallel         *bool           `db:"enable_parallel_execution"`
	Metadata         json.RawMessage `db:"metadata"`
	CreatedAt        time.Time       `db:"created_at"`
	UpdatedAt        time.Time       `db:"updated_at"`
	FormerNames      []string        `db:"former_names"` // the newest last
	db.Makers
}

// AttachedTool is the part of a CustomTool that an agent's model gets.
type AttachedTool struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Schema      json.RawMessage `json:"schema"`
	FormerNames []string        `json:"former_names"`
}

// attachedTools selects the AttachedTools of an agent's row.
const attachedTools = `(
	SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name, 'schema', t.json_schema,
	                                           'former_names', t.former_names)
	                         ORDER BY x.attached_at, t.key), '[]')
	FROM agent_tools x JOIN tools t ON t.org = x.org AND t.key = x.tool_key
	WHERE x.org = $1 AND x.agent_id = agents.id) AS attached_tools`

// SubagentName is a definition of sub-agents as its agent's model sees it.
type SubagentName struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// definedSubagents selects the SubagentNames of an agent's row.
const definedSubagents = `(
	SELECT coalesce(json_agg(json_build_object('name', s.name, 'description', s.description) ORDER BY s.name), '[]')
	FROM subagents s WHERE s.org = $1 AND s.agent_key = agents.key) AS subagents`

// hasSkills selects whether a folder of skills is attached to the agent of a row.
const hasSkills = `EXISTS (
	SELECT FROM agent_folders x JOIN folders d ON d.org = x.org AND d.key = x.folder_key
	WHERE x.org = $1 AND d.org = $1 AND x.agent_id = agents.id AND d.skills AND d.deleted_at IS NULL) AS has_skills`

const toolColumns = `t.key, t.id, t.name, t.description, t.json_schema, t.args_json_schema, t.source_code,
	t.source_type, t.tags, t.return_char_limit, t.pip_requirements, t.npm_requirements, t.default_requires_approval,
	t.enable_parallel_execution, t.metadata, t.created_at, t.updated_at, t.former_names, t.made_by, t.changed_by`

func (t CustomTool) args(org db.Org) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "name": t.Name, "description": db.Clean(t.Description), "schema": t.Schema,
		"args": t.ArgsSchema, "source": t.Source, "source_type": t.SourceType, "tags": db.Tags(t.Tags),
		"limit": t.ReturnCharLimit, "pip": t.Pip, "npm": t.NPM, "approval": t.RequiresApproval, "parallel": t.Parallel,
		"metadata": t.Metadata}
}

// storedBy returns the arguments of a statement that stores the definition: its fields, and who stores it.
func (t CustomTool) storedBy(ctx context.Context, org db.Org) pgx.StrictNamedArgs {
	args := t.args(org)
	args["by"] = db.ProvenanceOf(ctx)
	return args
}

// ToolFilter narrows a list of tools. A nil list selects all.
type ToolFilter struct {
	Names, IDs []string
	Contains   string   // a part of the name; case is ignored
	None       bool     // no definitions
	Builtin    []string // ids of built-in tools in the list; they come before all definitions
}

const filteredTools = ` FROM tools t
	WHERE t.org = @org AND NOT @none AND (@names::text[] IS NULL OR t.name = ANY (@names))
	  AND (@ids::text[] IS NULL OR t.id = ANY (@ids))
	  AND (@contains = '' OR strpos(lower(t.name), lower(@contains)) > 0)`

func (f ToolFilter) args(org db.Org) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "names": f.Names, "ids": f.IDs, "contains": f.Contains, "none": f.None}
}
