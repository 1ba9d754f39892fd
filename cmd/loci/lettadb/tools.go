package lettadb

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// lettaTool is a tool in Letta's database.
type lettaTool struct {
	row
	Name             string
	Description      *string
	Type             string          `json:"tool_type"`
	SourceType       string          `json:"source_type"`
	Source           *string         `json:"source_code"`
	Schema           json.RawMessage `json:"json_schema"`
	ArgsSchema       json.RawMessage `json:"args_json_schema"`
	Tags             json.RawMessage
	ReturnCharLimit  *int            `json:"return_char_limit"`
	Pip              json.RawMessage `json:"pip_requirements"`
	NPM              json.RawMessage `json:"npm_requirements"`
	RequiresApproval *bool           `json:"default_requires_approval"`
	Parallel         *bool           `json:"enable_parallel_execution"`
	Metadata         json.RawMessage `json:"metadata_"`
}

// The types of tools that Letta's users wrote, and of those that an MCP server runs.
const (
	customTool = "custom"
	mcpTool    = "external_mcp"
)

// tools imports the definitions of custom tools. Letta's own tools exist in Loci too, or are left out.
func (r *run) tools(ctx context.Context) error {
	all, err := list[lettaTool](ctx, r, "tools", `SELECT * FROM tools WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, t := range all {
		if r.Has(t.Name) {
			r.report.stored("tools", false)
			continue
		}
		_, err := r.Agents.Tool(ctx, r.org, t.ID)
		missing, err := absent(err)
		switch {
		case err != nil:
			return err
		case !missing:
			r.report.stored("tools", false)
		case t.Type == mcpTool:
			r.report.leftOut("tools", "tool %s: left out. It is a tool of an MCP server: give it to agents with client_tools, "+
				"and run it there.", db.Short(t.Name))
		case t.Type != customTool:
			r.report.leftOut("tools", "tool %s: left out. It is a tool of Letta's server of the type %s, which Loci lacks.",
				db.Short(t.Name), db.Short(t.Type))
		default:
			if err := r.item(ctx, "tools", t.ID, func(txRun *run) error { return txRun.tool(ctx, t) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// toolNames matches valid names of tools.
var toolNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (r *run) tool(ctx context.Context, t lettaTool) error {
	schema := object(t.Schema)
	if !toolNames.MatchString(t.Name) || schema == nil {
		return db.Invalid("a tool needs a name of letters, digits, '_' and '-', and a schema. Its name is %q",
			db.Short(t.Name))
	}
	var tags []string
	_ = json.Unmarshal(t.Tags, &tags) // other forms count as none
	limit := 50_000
	if t.ReturnCharLimit != nil {
		limit = min(max(*t.ReturnCharLimit, 1), 1_000_000)
	}
	definition := agent.CustomTool{ID: t.ID, Name: t.Name, Schema: schema, ArgsSchema: object(t.ArgsSchema),
		Source: cleanText(t.Source), SourceType: cmp.Or(t.SourceType, "python"), Tags: tags, ReturnCharLimit: limit,
		Pip: array(t.Pip), NPM: array(t.NPM), RequiresApproval: t.RequiresApproval, Parallel: t.Parallel,
		Metadata: object(t.Metadata), CreatedAt: t.created(), UpdatedAt: t.updated()}
	if t.Description != nil {
		definition.Description = *t.Description
	}
	id, err := r.Agents.RestoreTool(ctx, r.org, definition, false)
	if err == nil && id != t.ID {
		return db.Conflict("the organization has another tool %s, %s, which stays", t.Name, id)
	}
	return err
}

// array returns a JSON array without characters that Postgres cannot store; nil for any other JSON value.
func array(raw json.RawMessage) json.RawMessage {
	if text := cleanEscapes(string(raw)); len(text) > 0 && text[0] == '[' {
		return json.RawMessage(text)
	}
	return nil
}
