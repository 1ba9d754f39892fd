package files

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/filter"
)

// Fields are what filters may ask of files.
var Fields = filter.Fields{
	"metadata": {Kind: filter.JSON, SQL: `$.metadata`},
	"file": {Kind: filter.Texts, SQL: `(
		SELECT ARRAY[$.id, $.name, d.name || '/' || $.name] FROM folders d WHERE d.org = @org AND d.key = $.folder_key)`},
	"folder": {Kind: filter.Texts, SQL: `(
		SELECT ARRAY[d.id, d.name] FROM folders d WHERE d.org = @org AND d.key = $.folder_key)`},
	"media_type":   {Kind: filter.Text, SQL: `$.media_type`},
	"language":     {Kind: filter.Text, SQL: `$.language`},
	"size_bytes":   {Kind: filter.Number, SQL: `$.size_bytes`},
	"created_at":   {Kind: filter.Time, SQL: `$.created_at`},
	"updated_at":   {Kind: filter.Time, SQL: `$.updated_at`},
	"agent":        {Kind: filter.Text, SQL: `($.provenance ->> 'agent_id')`},
	"conversation": {Kind: filter.Text, SQL: `($.provenance ->> 'conversation_id')`},
	"tool":         {Kind: filter.Text, SQL: `($.provenance ->> 'tool')`},
}

// Narrowing is a filter by Fields, in JSON; nil leaves all files. Dates without an offset are in Zone; nil is UTC.
type Narrowing struct {
	Filter json.RawMessage
	Zone   *time.Location
}

// where returns the condition on files f, and adds its arguments to args. none reports whether it leaves all files. A
// *db.FieldError if the filter is not valid.
func (n Narrowing) where(args pgx.StrictNamedArgs) (where string, none bool, err error) {
	f, err := filter.Parse(n.Filter, Fields, n.Zone)
	if err != nil {
		return "", false, err
	}
	return f.Where(Fields, "f", args), f.Empty(), nil
}
