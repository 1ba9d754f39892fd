package lettadb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// noHome says why tables of Letta's have no place in Loci.
var noHome = map[string]string{
	"agent_environment_variables":   "They are secrets of tools, which Loci does not run.",
	"sandbox_configs":               "Loci runs no tools.",
	"sandbox_environment_variables": "They are secrets of tools, which Loci does not run.",
	"users":                         "Loci has API keys: make some with 'loci keys create'.",
	"groups":                        "Loci runs no groups of agents.",
	"groups_agents":                 "Loci runs no groups of agents.",
	"groups_blocks":                 "Loci runs no groups of agents.",
	"blocks_conversations":          "Blocks belong to agents: one of a conversation alone is attached to none.",
	"source_passages":               "Files are split into passages again, with the numbers of their lines.",
	"jobs":                          "They are records of work that is done.",
	"runs":                          "They are records of work that is done; messages keep the ids of theirs.",
	"steps":                         "They are records of work that is done; messages keep the ids of theirs.",
	"run_metrics":                   "They are measurements.",
	"step_metrics":                  "They are measurements.",
	"provider_traces":               "They are logs of requests to models.",
	"provider_trace_metadata":       "They are logs of requests to models.",
	"providers":                     "Loci's models are settings: LOCI_LLM_BASE_URL, LOCI_EMBEDDING_BASE_URL and others.",
	"provider_models":               "Loci's models are settings: LOCI_LLM_BASE_URL, LOCI_EMBEDDING_BASE_URL and others.",
	"llm_batch_items":               "They are records of work that is done.",
	"llm_batch_job":                 "They are records of work that is done.",
	"mcp_server":                    "Loci calls no MCP servers.",
	"mcp_oauth":                     "Loci calls no MCP servers.",
	"mcp_tools":                     "Loci calls no MCP servers.",
	"prompts":                       "Loci keeps no library of prompts.",
}

// inOthers are tables with rows that are imported together with other tables' rows, and the record of Letta's
// migrations.
var inOthers = []string{"alembic_version", "conversation_messages", "file_contents", "passage_tags", "blocks_tags"}

// countOthers counts the rows in tables that are not imported.
func (r *run) countOthers(ctx context.Context) error {
	for _, table := range r.from.tables {
		if slices.Contains(imported, table) || slices.Contains(inOthers, table) {
			continue
		}
		n, err := db.One[int64](ctx, r.from.tx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize())
		if err != nil {
			return err
		}
		reason, known := noHome[table]
		if !known {
			reason = "It is no table of Letta's."
		}
		if n > 0 {
			r.report.NoHome = append(r.report.NoHome, Others{table, n, reason})
		}
	}
	return nil
}
