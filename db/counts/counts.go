// Package counts counts, for metrics, what a database holds and how much work waits in it, over all organizations.
package counts

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// Count is one number about the database.
type Count struct {
	Of    string  `db:"of"`
	Name  string  `db:"name"`
	State string  `db:"state"`
	Value float64 `db:"value"`
}

// All returns all numbers about a database. If a node of a cluster is away, the numbers that need it are left out.
func All(ctx context.Context, d db.DB) (all []Count, err error) {
	for _, sql := range numbers {
		counts, failed := db.All[Count](ctx, d, `SELECT * FROM (`+sql+`) c (of, name, state, value)`)
		if failed != nil && (!db.Unavailable(failed) || len(all) == 0) {
			return nil, failed
		}
		all = append(all, counts...)
	}
	return all, nil
}

// numbers counts waiting jobs, files and texts. Each statement reads one table and those that it refers to; the first
// one reads what a cluster has on its coordinator.
//
// A file's job is scheduled in the virtual time of its queue, which is years ago. Such a job counts as waiting since it
// was created.
var numbers = []string{
	`
	SELECT 'job' AS of, queue AS name, state::text AS state, count(*)::double precision AS value
	FROM river_job WHERE state <> 'completed' GROUP BY queue, state
	UNION ALL
	SELECT 'oldest', queue, '',
	       greatest(0, extract(epoch FROM now() - min(greatest(scheduled_at, created_at))))::double precision
	FROM river_job WHERE state = 'available' GROUP BY queue
	UNION ALL
	SELECT 'size', '', '', pg_database_size(current_database())::double precision`,
	`
	SELECT 'file', '', status, count(*)::double precision
	FROM (
	    SELECT CASE WHEN f.error IS NOT NULL THEN 'error'
	                WHEN f.generation < f.wanted_generation THEN 'waiting'
	                ELSE 'parsed' END AS status
	    FROM files f
	    JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
	) s
	GROUP BY status`,
	`
	SELECT 'vector', 'files', '', coalesce(sum(b.end_ordinal - b.first_ordinal), 0)::double precision
	FROM embed_batches b JOIN embedding_spaces s ON s.id = b.space_id AND s.used_at > now() - interval '5 minutes'`,
	`
	SELECT 'vector', 'messages', '', coalesce(sum(messages - embedded), 0)::double precision
	FROM conversations WHERE unembedded AND deleted_at IS NULL AND embedded_space IS NOT NULL`,
	`
	SELECT 'vector', 'passages', '', count(*)::double precision FROM unembedded_passages WHERE refused IS NULL`,
	`
	SELECT 'vector', 'memory_files', '', count(*)::double precision
	FROM memory_files WHERE unembedded AND deleted_at IS NULL`,
	`
	SELECT 'open', '', '', count(*)::double precision FROM agent_files WHERE is_open`,
}
