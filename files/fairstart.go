package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// largeBytes is the size beyond which a file waits in QueueLarge; the index files_turn names it too.
const largeBytes = 1 << 20

func queueOf(size int64) string {
	if size > largeBytes {
		return QueueLarge
	}
	return QueueParse
}

// cost is the length of parsing a file of size bytes in the queue's virtual time.
func cost(size int64) time.Duration { return time.Millisecond * time.Duration(1+size>>16) }

// parseStart returns when the next file of a folder starts. Files that arrive in the same moment may get the same
// start: that costs no lock, and puts the folder ahead by no more files than there are connections.
func (s *Store) parseStart(ctx context.Context, org db.Org, folderKey, size int64) (time.Time, error) {
	return db.One[time.Time](ctx, s.db, `SELECT `+queue.FairStart(`
			SELECT turn FROM files
			WHERE org = @org AND folder_key = @folder AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`),
		pgx.StrictNamedArgs{"queue": queueOf(size), "org": org, "folder": folderKey, "large": size > largeBytes})
}

// embedStart returns when the next batch of a folder starts.
func (s *Store) embedStart(ctx context.Context, org db.Org, folderKey int64, space int16) (time.Time, error) {
	return db.One[time.Time](ctx, s.db, `SELECT `+queue.FairStart(`
			SELECT turn FROM embed_batches
			WHERE org = @org AND folder_key = @folder AND space_id = @space AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1`),
		pgx.StrictNamedArgs{"queue": QueueEmbed, "org": org, "folder": folderKey, "space": space})
}
