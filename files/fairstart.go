package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// cost returns how long parsing a file takes in the queue's virtual time. size is in bytes.
func cost(size int64) time.Duration { return time.Millisecond * time.Duration(1+size>>16) }

// parseTurn returns the turn of a folder's next file. Files that arrive at the same moment may get the same turn. This
// avoids a lock, and puts the folder ahead by at most as many files as there are connections.
func (s *Store) parseTurn(ctx context.Context, org db.Org, folderKey, size int64, mediaType string) (
	queue.Turn, error) {
	return queue.FairTurn(ctx, s.db, `
			SELECT turn FROM files
			WHERE org = @org AND folder_key = @owner AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`, `
			SELECT folder_key AS owner FROM files
			WHERE org = @org AND folder_key > o.owner AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY folder_key LIMIT 1`,
		pgx.StrictNamedArgs{"queue": queueOf(size, mediaType), "org": org, "owner": folderKey, "large": size > largeBytes,
			"length": cost(size)})
}

// batchLength is how long a batch takes in the queue's virtual time.
const batchLength = time.Millisecond

// embedTurn returns the turn of a folder's next batch.
func (s *Store) embedTurn(ctx context.Context, org db.Org, folderKey int64, space int16) (queue.Turn, error) {
	return queue.FairTurn(ctx, s.db, `
			SELECT turn FROM embed_batches
			WHERE org = @org AND folder_key = @owner AND space_id = @space AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`, `
			SELECT folder_key AS owner FROM embed_batches
			WHERE org = @org AND folder_key > o.owner AND space_id = @space AND turn IS NOT NULL
			ORDER BY folder_key LIMIT 1`,
		pgx.StrictNamedArgs{"queue": QueueEmbed, "org": org, "owner": folderKey, "space": space, "length": batchLength})
}
