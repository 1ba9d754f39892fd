package quota

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// OrgUsage is the usage of an organization.
type OrgUsage struct {
	OrgID       string    `json:"org_id" doc:"The id of the organization."`
	OrgName     string    `json:"org_name" doc:"Its name."`
	Agents      int64     `json:"agents" doc:"Hidden ones and sub-agents, too."`
	Documents   int64     `json:"documents" doc:"Files of folders."`
	Passages    int64     `json:"passages" doc:"Of all archives."`
	Messages    int64     `json:"messages" doc:"Of all conversations, system prompts included."`
	StoredBytes int64     `json:"stored_bytes" doc:"The sum of bytes."`
	Bytes       ByKind    `json:"bytes" doc:"By kind, as they came; what is made of them is not counted."`
	Requests    int64     `json:"requests" doc:"Of the period."`
	PeriodStart time.Time `json:"period_start" doc:"The first moment of the month, in UTC."`
	PeriodEnd   time.Time `json:"period_end" doc:"The first moment of the next month."`
	Quotas      Limits    `json:"quotas" doc:"What it may have at most."`
}

// ByKind is the stored bytes by kind of row.
type ByKind struct {
	Documents          int64 `json:"documents" doc:"The originals of files."`
	Messages           int64 `json:"messages" doc:"The contents of messages."`
	Passages           int64 `json:"passages" doc:"The texts of passages."`
	LongResults        int64 `json:"long_results" doc:"Results of tools that are too long for the log."`
	BlockVersions      int64 `json:"block_versions" doc:"The values of blocks with their earlier versions."`
	MemoryFileVersions int64 `json:"memory_file_versions" doc:"The texts of memory files with their earlier versions."`
}

// used is what an organization uses.
type used struct {
	Quotas   *Limits `db:"quotas"`
	Requests int64   `db:"requests"`
	Stored   map[string]struct{ Items, Bytes int64 }
}

// usedOf selects what the organization $1 uses, with its requests of the month $2.
const usedOf = `
	SELECT (SELECT row_to_json(q) FROM quotas q WHERE q.org = $1) AS quotas,
	       coalesce((SELECT requests FROM request_counts WHERE org = $1 AND month = $2), 0) AS requests, (
	       SELECT coalesce(jsonb_object_agg(kind, jsonb_build_object('items', items, 'bytes', bytes)), '{}') FROM (
	           SELECT kind, sum(items) AS items, sum(bytes) AS bytes FROM stored_usage WHERE org = $1 GROUP BY kind
	       ) sums) AS stored`

// Usages returns a page of the usage of organizations that are not deleted; if all is false, only of the organization
// only. It reports the requests of the month that contains moment, as far as servers have stored them.
func (s *Store) Usages(ctx context.Context, only db.Org, all bool, moment time.Time, p db.Page) ([]OrgUsage, error) {
	type row struct {
		ID      string    `db:"id"`
		Created time.Time `db:"created_at"`
		Key     db.Org    `db:"key"`
		Name    string    `db:"name"`
		used    used
	}
	month := monthOf(moment)
	rows, err := db.List[row](ctx, s.DB, p, `
		SELECT o.id, o.created_at, o.org AS key, o.name FROM organizations o
		WHERE o.deleted_at IS NULL AND (@all OR o.org = @org)`,
		pgx.StrictNamedArgs{"org": only, "all": all})
	for i := range rows {
		if err == nil {
			rows[i].used, err = db.One[used](ctx, s.DB, usedOf, rows[i].Key, month)
		}
	}
	list := make([]OrgUsage, len(rows))
	for i, r := range rows {
		list[i] = OrgUsage{OrgID: r.ID, OrgName: r.Name, Agents: r.used.Stored["agents"].Items,
			Documents: r.used.Stored["documents"].Items, Passages: r.used.Stored["passages"].Items,
			Messages: r.used.Stored["messages"].Items, Requests: r.used.Requests, PeriodStart: month,
			PeriodEnd: month.AddDate(0, 1, 0),
			Bytes: ByKind{Documents: r.used.Stored["documents"].Bytes, Messages: r.used.Stored["messages"].Bytes,
				Passages: r.used.Stored["passages"].Bytes, LongResults: r.used.Stored["long_results"].Bytes,
				BlockVersions:      r.used.Stored["block_versions"].Bytes,
				MemoryFileVersions: r.used.Stored["memory_file_versions"].Bytes}}
		if r.used.Quotas != nil {
			list[i].Quotas = *r.used.Quotas
		}
		for _, stored := range r.used.Stored {
			list[i].StoredBytes += stored.Bytes
		}
	}
	return list, err
}
