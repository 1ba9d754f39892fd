package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// cost is the length of parsing a file of size bytes in the queue's virtual time.
func cost(size int64) time.Duration { return time.Millisecond * time.Duration(1+size>>16) }

// parseTurn returns the turn of the next file of a folder, of size bytes. Files that arrive in the same moment may get
// the same one: that costs no lock, and puts the folder ahead by no more files than there are connections.
func (s *Store) parseTurn(ctx context.Context, org db.Org, folderKey, size int64) (queue.Turn, error) {
	return db.One[queue.Turn](ctx, s.db, queue.FairTurn(`
			SELECT turn FROM files
			WHERE org = @org AND folder_key = @owner AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`, `
			SELECT folder_key AS owner FROM files
			WHERE org = @org AND folder_key > o.owner AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY folder_key LIMIT 1`),
		pgx.StrictNamedArgs{"queue": queueOf(size), "org": org, "owner": folderKey, "large": size > largeBytes,
			"length": cost(size)})
}

// batchLength is the length of a batch in the queue's virtual time.
const batchLength = time.Millisecond

// embedTurn returns the turn of the next batch of a folder.
func (s *Store) embedTurn(ctx context.Context, org db.Org, folderKey int64, space int16) (queue.Turn, error) {
	return db.One[queue.Turn](ctx, s.db, queue.FairTurn(`
			SELECT turn FROM embed_batches
			WHERE org = @org AND folder_key = @owner AND space_id = @space AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`, `
			SELECT folder_key AS owner FROM embed_batches
			WHERE org = @org AND folder_key > o.owner AND space_id = @space AND turn IS NOT NULL
			ORDER BY folder_key LIMIT 1`),
		pgx.StrictNamedArgs{"queue": QueueEmbed, "org": org, "owner": folderKey, "space": space, "length": batchLength})
}
