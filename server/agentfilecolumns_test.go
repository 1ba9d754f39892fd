package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// notCarried are the tables and columns of tenants that an agent's full file does not carry, each with the reason. A
// key is a table, a column of all tables, or a column of one table.
var notCarried = map[string]string{
	"org": "that of the import",
	"key": "a number of the database's own", "agent_key": "a number of the database's own",
	"archive_key": "a number of the database's own", "block_key": "a number of the database's own",
	"conversation_key": "a number of the database's own", "file_key": "a number of the database's own",
	"folder_key": "a number of the database's own", "identity_key": "a number of the database's own",
	"tool_key": "a number of the database's own", "tree_key": "a number of the database's own",
	"forked_from": "a number of the database's own", "superseded_by": "a number of the database's own",

	"recalled_notes": "copies of what other memories held, for the caches of a provider",

	"chunks": "made again from the original", "file_segments": "made again from the original",
	"gram_blocks": "made again from the original", "gram_units": "made again from the original",
	"word_segments": "made again from the rows", "word_postings": "made again from the rows",
	"word_changes":     "for segments that are made again",
	"files.generation": "made again from the original", "files.wanted_generation": "made again from the original",
	"files.parse_started_at": "made again from the original", "files.error": "made again from the original",
	"files.charset": "made again from the original", "files.charset_sure": "made again from the original",
	"files.chars": "made again from the original",
	"files.lines": "made again from the original", "files.chunks": "made again from the original",
	"files.first_chunk": "made again from the original", "files.last_chunk": "made again from the original",
	"files.pages": "made again from the original", "files.turn": "made again from the original",
	"files.gram_generation": "made again from the original", "files.updated_at": "when it was parsed",
	"files.cancelled": "the parsing begins again", "files.replaces": "a file that waits to replace another is left out",

	"chunk_vectors": "vectors are made again", "passage_vectors": "vectors are made again",
	"passage_values":  "they are read from the metadata again",
	"message_vectors": "vectors are made again", "unembedded_passages": "vectors are made again",
	"memory_file_vectors": "vectors are made again", "memory_files.unembedded": "vectors are made again",
	"memory_files.refused_chunks": "vectors are made again",
	"embed_batches":               "vectors are made again", "embed_refusals": "vectors are made again",
	"embedded_space": "vectors are made again", "embed_error": "vectors are made again",
	"conversations.embedded": "vectors are made again", "conversations.unembedded": "vectors are made again",
	"conversations.embed_refused": "vectors are made again", "conversations.held_until": "a plan of the moment",

	"lex": "made again from the text", "terms": "made again from the text", "message_pieces": "made again from the text",
	"lex_version": "of lex, which is made again",

	"read_pages":        "made again from the original",
	"files.pages_found": "made again from the original",
	"files.pages_read":  "made again from the original", "files.read_by": "made again from the original",

	"user_memory_trees.attached_at": "when the import made it the user's",

	"user_key":            "a number of the database's own: the identity in the file names what is its",
	"blocks.template_key": "a key: the identity in the file names the copy and its block",

	"archives.deleted_at": "a deleted archive is left out", "folders.deleted_at": "a deleted folder is left out",
	"prompt_parts.used_at": "when it was last handed out",
	"erasures":             "requests and reports of the organization",
	"erased_messages":      "the messages themselves are marked",
	"deleted_places":       "what is deleted is left out", "agent_logs": "has only numbers of the database's own",
	"blobs.used_at": "when it was last stored", "compaction_claims": "a compaction that is being made",

	"policy_changes": "a log of what operators changed",
	"children":       "tasks of agents that are not in the file",

	"prompts": "a log of what was handed out", "prompt_parts": "a log of what was handed out",
	"runs": "a log of the server's work", "steps": "a log of the server's work",
	"flushes":   "a log of the server's work",
	"handovers": "a log of the server's work", "handover_updates": "a log of the server's work",
	"replays": "of recorded sessions, not of the agent", "replay_sessions": "of recorded sessions, not of the agent",
	"replay_parts":   "of recorded sessions, not of the agent",
	"run_items":      "a log of the server's work",
	"model_factors":  "of the organization's models, not of the agent",
	"request_counts": "of the organization, not of the agent",
	"gateway_counts": "of the organization, not of the agent",
	"stored_usage":   "what is counted",
	"quotas":         "of the organization, not of the agent",

	"agents.system_changed_at": "an import is an update: the file's updated_at",
}

// carriedColumn is a column of a tenant's table.
type carriedColumn struct {
	Table   string  `db:"table"`
	Name    string  `db:"name"`
	Default *string `db:"default"`
}

// carriedColumns returns the columns that a full file carries, by table.
func (c *client) carriedColumns() map[string][]carriedColumn {
	c.t.Helper()
	all, err := db.All[carriedColumn](c.t.Context(), c.pool, `
		SELECT c.relname::text AS table, a.attname::text AS name, pg_get_expr(d.adbin, d.adrelid) AS default
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
		ORDER BY 1, 2`)
	if err != nil {
		c.t.Fatal(err)
	}
	carried, excuses := map[string][]carriedColumn{}, map[string]bool{}
	for _, column := range all {
		excused := db.Shared(column.Table)
		for _, name := range []string{column.Table, column.Name, column.Table + "." + column.Name} {
			if !db.Shared(column.Table) && notCarried[name] != "" {
				excused, excuses[name] = true, true
			}
		}
		if !excused {
			carried[column.Table] = append(carried[column.Table], column)
		}
	}
	for name := range notCarried {
		if !excuses[name] {
			c.t.Errorf("%s excuses no column", name)
		}
	}
	return carried
}

// rows returns a table's rows, sorted, with the columns that a file carries.
func (c *client) rows(table string, columns []carriedColumn) []string {
	c.t.Helper()
	pairs := make([]string, len(columns))
	for i, column := range columns {
		pairs[i] = fmt.Sprintf("'%s', t.%[1]s", column.Name)
	}
	rows, err := db.All[string](c.t.Context(), c.pool, fmt.Sprintf(`
		SELECT json_build_object(%s)::text FROM %s t WHERE t.org = $1`, strings.Join(pairs, ", "), table), c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

// differs reports whether a row of the organization has a value other than the column's default.
func (c *client) differs(column carriedColumn) bool {
	c.t.Helper()
	fallback := "NULL"
	if column.Default != nil {
		fallback = *column.Default
	}
	found, err := db.One[bool](c.t.Context(), c.pool, fmt.Sprintf(`
		SELECT EXISTS (SELECT FROM %s t WHERE t.org = $1 AND t.%s IS NOT NULL AND t.%[2]s::text IS DISTINCT FROM (%s)::text)`,
		column.Table, column.Name, fallback), c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// settled sets columns that would take long to change over the API, so that each column has a value of its own.
func (c *client) settled() {
	c.t.Helper()
	for _, statement := range []string{
		`UPDATE conversations SET warned = true, settled_tokens = 7, reported_tokens = 8, reported_position = 1,
			fixed_tokens = 9, archived_at = '2026-01-02',
			last_run_completion = '2026-01-02', hidden = true, kept = '{1}', first_visible = 2, model = 'm',
			model_settings = '{"temperature": 1}', context_window_limit = 9000,
			depth = 2, clipped = '[{"Position": 2, "Part": 0, "Chars": 3}]', compaction_settings = '{"goal": 0.4}'
		 WHERE org = $1 AND summary = 'Second'`,
		`UPDATE compactions SET why = 'because', focus = 'the port', model = 'm', model_calls = 2, prompt_tokens = 3,
			output_tokens = 4, duration_ms = 5, reverted_at = '2026-01-02', trigger = 'prune', policy = 'p',
			steps = '[{"step": "snip"}]', edits = '[{"position": 2, "part": 0, "chars": 3}]'
		 WHERE org = $1`,
		`UPDATE tools SET former_names = '{was}' WHERE org = $1`,
		`UPDATE agents SET hidden = true, depth = 1, last_run_completion = '2026-01-02', last_run_duration_ms = 5,
			last_stop_reason = 'end_turn' WHERE org = $1`,
		`INSERT INTO subagents (org, agent_key, name, description, definition, created_at, updated_at)
		 SELECT org, key, 'scout', 'd', '{"prompt": "p", "grants": {"default": true, "blocks": [], "folders": [],
			"files": [], "memory_tree": null}}', '2026-01-02', '2026-01-03' FROM agents WHERE org = $1`,
		`INSERT INTO memory_trees (org, name) VALUES ($1, 'of Bob')`,
		`INSERT INTO user_memory_trees (org, agent_id, user_key, tree_key)
		 SELECT i.org, a.id, i.key, t.key FROM identities i, memory_trees t, agents a
		 WHERE i.org = $1 AND t.org = $1 AND a.org = $1 AND i.identifier_key = 'bob' AND t.name = 'of Bob'`,
		`UPDATE working_memories SET turned = 1 WHERE org = $1`,
		`UPDATE agent_files SET pinned = true, automatic = true WHERE org = $1`,
		`UPDATE agent_blocks SET read_only = true, attached_by = '{"tool": "t"}' WHERE org = $1 AND label = 'shared'`,
		`UPDATE folders SET made_by = '{"tool": "t"}', changed_by = '{"tool": "u"}' WHERE org = $1`,
		`UPDATE archives SET made_by = '{"tool": "t"}', changed_by = '{"tool": "u"}' WHERE org = $1`,
		`UPDATE identities SET made_by = '{"tool": "t"}', changed_by = '{"tool": "u"}' WHERE org = $1`,
		`UPDATE tools SET made_by = '{"tool": "t"}', changed_by = '{"tool": "u"}' WHERE org = $1`,
		`UPDATE agent_folders SET opens = true WHERE org = $1`,
		`UPDATE blocks SET hidden = true, template = '{"is_template": true, "template_name": "t"}' WHERE org = $1`,
		`UPDATE archives SET embedding = 'e/m', metadata = '{"k": 1}' WHERE org = $1`,
		`UPDATE passages SET metadata = '{"k": 1}', language = 'fi', language_given = true WHERE org = $1`,
		`UPDATE files SET metadata = '{"k": 1}', language = 'fi', language_given = true WHERE org = $1 AND name = 'a.txt'`,
		`UPDATE messages SET provenance = '{"tool": "t", "position": 2}' WHERE org = $1 AND position = 1`,
		`UPDATE files SET provenance = '{"tool": "t"}' WHERE org = $1`,
		`UPDATE folders SET description = 'd', metadata = '{"k": 1}', chunk_tokens = 200, overlap_tokens = 20 WHERE org = $1`,
	} {
		if _, err := c.pool.Exec(c.t.Context(), statement, c.org); err != nil {
			c.t.Fatal(err)
		}
	}
}

// A full file carries each column of a tenant's table, unless notCarried names the column with a reason.
func TestEachColumnIsCarriedByAFullFile(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	c, other := newClient(t), newElsewhereClient(t)
	id := c.remembering()
	c.settled()
	carried := c.carriedColumns()
	for _, columns := range carried {
		for _, column := range columns {
			if !c.differs(column) {
				t.Errorf("%s.%s has no value of its own here: give the agent of this test one, so that a file that does not "+
					"carry it is found, or say in notCarried why none does", column.Table, column.Name)
			}
		}
	}
	var settings map[string]json.RawMessage
	a, err := c.server.Agents.Agent(t.Context(), c.org, id)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(a.Settings)
	if err := json.Unmarshal(raw, &settings); err != nil {
		t.Fatal(err)
	}
	if n := reflect.TypeFor[agent.Settings]().NumField(); len(settings) != n {
		t.Errorf("the agent has %d of %d settings: %s", len(settings), n, raw)
	}
	other.imported(c.must("GET", "/v1/agents/"+id+"/export?full=true", ""))
	other.awaitFilesOf(id)
	for table, columns := range carried {
		if diff := cmp.Diff(c.rows(table, columns), other.rows(table, columns)); diff != "" {
			t.Errorf("%s differs (-exported +imported):\n%.3000s", table, diff)
		}
	}
}
