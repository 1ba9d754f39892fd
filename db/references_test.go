package db_test

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// notReferences lists the columns of tenants' tables that look like a reference to another row but have no foreign key,
// each with the reason. A column is given by its name, or by its table and name.
var notReferences = map[string]string{
	"seq":                       "a number of an event, which its agent counts",
	"last_used_seq":             "a number of an event, which its agent counts",
	"from_seq":                  "a number of an event, which its agent counts",
	"to_seq":                    "a number of an event, which its agent counts",
	"tokens":                    "a count",
	"requests":                  "a count",
	"items":                     "a count",
	"hidden_tokens":             "a count",
	"quotas.agents":             "a count",
	"quotas.stored_bytes":       "a count",
	"quotas.requests_per_month": "a count",

	"quotas.gateway_requests_per_day": "a count", "quotas.gateway_tokens_per_day": "a count",
	"prompt_tokens":               "a count",
	"output_tokens":               "a count",
	"duration_ms":                 "a time",
	"last_run_duration_ms":        "a time",
	"model_ns":                    "a time",
	"size_bytes":                  "a size",
	"start_byte":                  "a place in a text",
	"chars":                       "a size",
	"bytes":                       "contents",
	"bits":                        "contents",
	"postings":                    "contents",
	"row_keys":                    "contents, of rows that may be deleted since",
	"vocabulary":                  "contents",
	"after_place":                 "a key or a seq, after which a segment begins, of a row that may be deleted since",
	"until_place":                 "a key or a seq, at which a segment ends, of a row that may be deleted since",
	"files.first_chunk":           "bounds of keys in the index of words; rows outside of them are only not looked at",
	"files.last_chunk":            "as files.first_chunk",
	"word_changes.place":          "a key or a seq of a row that may be deleted since",
	"sha256":                      "a hash of the row's own contents",
	"otid_sha256":                 "a hash of the row's own contents",
	"embedded_space":              "a space that was deleted since counts as none",
	"events.ref_id":               "the id of a file, folder, message or other thing, which may be deleted since",
	"chunks.id":                   "the row's own, which no other row has by chance",
	"files.read_by":               "the name of a program of the operator",
	"prompts.parts":               "an array of hashes of prompt_parts, for which Postgres has no foreign keys",
	"tool_calls.call_id":          "the caller's name of the call",
	"memory_files.refused_chunks": "hashes of parts of the row's own text",
	"memory_file_vectors.chunk":   "a hash of a part of its file's text",
	"children.call_id":            "the caller's name of the call",
	"children.message_id":         "that of a message which may be erased since",
	"messages.step_id":            "the caller's, or that of a step which may be deleted since",
	"messages.run_id":             "the caller's, or that of a run which may be deleted since",
	"messages.sender_id":          "the caller's",
	"messages.group_id":           "the caller's",
	"identities.identifier_key":   "the caller's own name for it",
	"compaction_claims.holder":    "a process",
	"agent_files.user_key":        "0 is nobody; the rows of a user are deleted with the identity",
	"erasures.message_id":         "of a message that may be deleted since",
	"erasures.user_id":            "of an identity that may be deleted since",
	"erasures.requested_by":       "an agent or key that may be deleted since",
	"erasures.decided_by":         "a key that may be deleted since",
	"runs.owner":                  "a server",
	"handovers.identity_id":       "of an identity that may be deleted since",
	"handover_updates.seqs":       "numbers of events, which the agent counts",
	"made_by":                     "a provenance, whose ids may be deleted since",
	"changed_by":                  "a provenance, whose ids may be deleted since",
	"attached_by":                 "a provenance, whose ids may be deleted since",
	"deleted_places.id":           "of a row that is deleted",
	"deleted_places.key":          "of a row that is deleted",
	"passage_values.path":         "a hash of names in metadata",
}

// looksLikeReference matches column names that look like references, of any type.
var looksLikeReference = regexp.MustCompile(`(^|_)(id|key|ref|of|by|space|owner|holder|replaces)$`)

// column is a column of a tenant's table.
type column struct {
	Table   string `db:"table"`
	Name    string `db:"name"`
	Type    string `db:"type"`
	Own     bool   `db:"own"`     // together with org, it is the table's own key
	Refers  bool   `db:"refers"`  // it is in a foreign key with org first on both sides
	Foreign bool   `db:"foreign"` // it refers to a shared table
}

func (c column) suspect() bool {
	numbers := []string{"bigint", "bigint[]", "uuid", "uuid[]", "bytea", "bytea[]"}
	return slices.Contains(numbers, c.Type) && c.Name != "terms" || looksLikeReference.MatchString(c.Name)
}

const columnsSQL = `
	WITH keys AS (
		SELECT conrelid, contype, confrelid, conkey,
		       (SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) AS first,
		       (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1]) AS first_there
		FROM pg_constraint WHERE connamespace = 'public'::regnamespace
	)
	SELECT c.relname::text AS table, a.attname::text AS name, format_type(a.atttypid, -1) AS type,
	       EXISTS (SELECT FROM keys WHERE conrelid = c.oid AND contype IN ('p', 'u') AND first = 'org'
	               AND cardinality(conkey) = 2 AND conkey[2] = a.attnum AND a.attname IN ('id', 'key')) AS own,
	       EXISTS (SELECT FROM keys WHERE conrelid = c.oid AND contype = 'f' AND a.attnum = ANY (conkey)
	               AND first = 'org' AND first_there = 'org') AS refers,
	       EXISTS (SELECT FROM keys WHERE conrelid = c.oid AND contype = 'f' AND a.attnum = ANY (conkey)
	               AND first_there <> 'org') AS foreign
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname <> 'org'
	ORDER BY 1, 2`

// untied returns the columns of tenants' tables that look like references and have no foreign key, by the entry of
// notReferences that excuses them. Columns without an excuse have the key "".
func untied(columns []column) map[string][]string {
	found := map[string][]string{}
	for _, c := range columns {
		if db.Shared(c.Table) || !c.suspect() || c.Refers || c.Foreign {
			continue
		}
		excuse := ""
		for _, name := range []string{c.Table + "." + c.Name, c.Name} {
			if notReferences[name] != "" {
				excuse = name
				break
			}
		}
		if excuse != "" || !c.Own {
			found[excuse] = append(found[excuse], c.Table+"."+c.Name)
		}
	}
	return found
}

func TestEachColumnThatNamesARowOfATenantHasAForeignKey(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	columns, err := db.All[column](t.Context(), pool, columnsSQL)
	if err != nil {
		t.Fatal(err)
	}
	found := untied(columns)
	for _, c := range found[""] {
		t.Errorf("column %s may name another row and is in no foreign key with org first; a new exception needs a reason", c)
	}
	for name := range notReferences {
		if found[name] == nil {
			t.Errorf("the exception %s excuses no column", name)
		}
	}
}

// Columns of a new table are found, by their types and by their names.
func columnWithoutForeignKeyIsFound(t *testing.T, url string) {
	tx := rolledBack(t, url)
	if _, err := tx.Exec(t.Context(), `
		CREATE TABLE notes (
			org integer REFERENCES organizations (org), key bigint, agent_key bigint, about uuid, file_id text,
			tied bigint, title text,
			PRIMARY KEY (org, key), FOREIGN KEY (org, tied) REFERENCES agents (org, key))`); err != nil {
		t.Fatal(err)
	}
	columns, err := db.All[column](t.Context(), tx, columnsSQL)
	if err != nil {
		t.Fatal(err)
	}
	if got := untied(columns)[""]; !slices.Equal(got, []string{"notes.about", "notes.agent_key", "notes.file_id"}) {
		t.Errorf("got %q, want the three columns of notes without a foreign key", got)
	}
}

// rolledBack begins a transaction on a database, which is rolled back at the end of the test.
func rolledBack(t *testing.T, url string) pgx.Tx {
	t.Helper()
	tx, err := dial(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}
