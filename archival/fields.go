package archival

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/filter"
)

// Fields are what filters may ask of passages.
var Fields = filter.Fields{
	"metadata":     {Kind: filter.JSON, SQL: `$.metadata`},
	"tags":         {Kind: filter.Texts, SQL: `$.tags`},
	"created_at":   {Kind: filter.Time, SQL: `$.happened_at`},
	"stored_at":    {Kind: filter.Time, SQL: `$.created_at`},
	"updated_at":   {Kind: filter.Time, SQL: `$.updated_at`},
	"valid_from":   {Kind: filter.Time, SQL: `$.valid_from`},
	"valid_until":  {Kind: filter.Time, SQL: `$.valid_until`},
	"language":     {Kind: filter.Text, SQL: `$.language`},
	"agent":        {Kind: filter.Text, SQL: `($.provenance ->> 'agent_id')`},
	"conversation": {Kind: filter.Text, SQL: `($.provenance ->> 'conversation_id')`},
	"tool":         {Kind: filter.Text, SQL: `($.provenance ->> 'tool')`},
	"archive": {Kind: filter.Texts, SQL: `(
		SELECT ARRAY[a.id, a.name] FROM archives a WHERE a.org = @org AND a.key = $.archive_key)`},
	"user": {Kind: filter.Texts, SQL: `(
		SELECT ARRAY[i.id, i.identifier_key] FROM archives a
		JOIN identities i ON i.org = a.org AND i.key = a.user_key
		WHERE a.org = @org AND i.org = @org AND a.key = $.archive_key)`},
}

// besideVectors are the fields that rows of vectors have, too.
var besideVectors = []string{"tags", "created_at", "valid_from", "valid_until", "archive", "user"}

// narrowed is the filter of a query, read, and what it says for indexes.
type narrowed struct {
	filter.Filter
	tags       []string   // each passage has one of these; nil: no such
	start, end *time.Time // each passage happened between these, both inclusive; nil: no such
}

// read reads a filter in JSON.
func read(raw json.RawMessage, zone *time.Location) (n narrowed, err error) {
	if n.Filter, err = filter.Parse(raw, Fields, zone); err != nil {
		return n, err
	}
	for _, test := range n.Must() {
		switch test.Field {
		case "tags":
			if tags := test.Texts(); n.tags == nil || tags != nil && len(tags) < len(n.tags) {
				n.tags = tags
			}
		case "created_at":
			start, end := test.Span()
			if start != nil && (n.start == nil || start.After(*n.start)) {
				n.start = start
			}
			if end != nil && (n.end == nil || end.Before(*n.end)) {
				n.end = end
			}
		}
	}
	return n, nil
}

// rows returns the condition on passages r, beginning with AND; empty if the filter leaves all.
func (n narrowed) rows(args pgx.StrictNamedArgs) string {
	if n.Empty() {
		return ""
	}
	return ` AND ` + n.Where(Fields, "r", args)
}

// vectors returns the condition on vectors v, beginning with AND; empty if the filter leaves all. A field that vectors
// lack is read in the passage, by its key: Postgres does not turn the subquery into a join of all passages.
func (n narrowed) vectors(args pgx.StrictNamedArgs) string {
	if n.Empty() {
		return ""
	}
	for name := range n.Asks() {
		if !slices.Contains(besideVectors, name) {
			return ` AND (SELECT ` + n.Where(Fields, "p", args) + ` FROM passages p
				WHERE p.org = @org AND p.key = v.passage_key)`
		}
	}
	return ` AND ` + n.Where(Fields, "v", args)
}

// byValues reports whether the values in the metadata of passages say which may pass.
func (n narrowed) byValues() bool { return len(n.Indexed(pgx.StrictNamedArgs{})) > 0 }

// isBlank reports whether a text has no words to search for.
func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
