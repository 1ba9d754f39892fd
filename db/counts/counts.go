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

// All returns all numbers about a database.
func All(ctx context.Context, d db.DB) ([]Count, error) { return db.All[Count](ctx, d, numbers) }

// numbers counts waiting jobs, files and texts.
//
// A file's job is scheduled in the virtual time of its queue, which is years ago. Such a job counts as waiting since it
// was created.
const numbers = `
	SELECT 'job' AS of, queue AS name, state::text AS state, count(*)::double precision AS value
	FROM river_job WHERE state <> 'completed' GROUP BY queue, state
	UNION ALL
	SELECT 'oldest', queue, '',
	       greatest(0, extract(epoch FROM now() - min(greatest(scheduled_at, created_at))))::double precision
	FROM river_job WHERE state = 'available' GROUP BY queue
	UNION ALL
	SELECT 'file', '', status, count(*)::double precision
	FROM (
	    SELECT CASE WHEN f.error IS NOT NULL THEN 'error'
	                WHEN f.generation < f.wanted_generation THEN 'waiting'
	                ELSE 'parsed' END AS status
	    FROM files f
	    JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
	) s
	GROUP BY status
	UNION ALL
	SELECT 'vector', 'files', '', coalesce(sum(b.end_ordinal - b.first_ordinal), 0)::double precision
	FROM embed_batches b JOIN embedding_spaces s ON s.id = b.space_id AND s.used_at > now() - interval '5 minutes'
	UNION ALL
	SELECT 'vector', 'messages', '', coalesce(sum(messages - embedded), 0)::double precision
	FROM conversations WHERE unembedded AND deleted_at IS NULL AND embedded_space IS NOT NULL
	UNION ALL
	SELECT 'vector', 'passages', '', count(*)::double precision FROM unembedded_passages WHERE refused IS NULL
	UNION ALL
	SELECT 'vector', 'memory_files', '', count(*)::double precision
	FROM memory_files WHERE unembedded AND deleted_at IS NULL
	UNION ALL
	SELECT 'open', '', '', count(*)::double precision FROM agent_files WHERE is_open
	UNION ALL
	SELECT 'size', '', '', pg_database_size(current_database())::double precision`
