package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// Folders share the workers fairly, by start-time fair queueing: the queue gives out jobs by scheduled_at, which here is no time of the day
// but a virtual one. It stands where the next job to be given out begins. A folder's first job begins there, each further one
// where that before it ends, and how long a job takes is told by its size. So a folder with a hundred thousand files holds
// back another folder's one file by one job, and a folder that was quiet has nothing to its credit.

// largeBytes is the size beyond which a file waits in QueueLarge; the index files_turn names it too.
const largeBytes = 1 << 20

func queueOf(size int64) string {
	if size > largeBytes {
		return QueueLarge
	}
	return QueueParse
}

// cost is how long parsing so many bytes takes in the queue's time.
func cost(size int64) time.Duration { return time.Millisecond * time.Duration(1+size>>16) }

// firstTurn is where virtual time begins when nothing waits: far enough back that it never reaches the day's.
const firstTurn = `'2000-01-01 00:00:00+00'::timestamptz`

// nextInQueue is where the first job of a queue begins that was not tried before.
const nextInQueue = `
	(SELECT scheduled_at FROM river_job WHERE state = 'available' AND queue = @queue AND attempt = 0 ORDER BY priority, scheduled_at, id LIMIT 1)`

// parseTurn is where the next file of a folder begins. Files that arrive in the same moment may get the same turn: that costs no lock,
// and puts the folder ahead by no more files than there are connections.
func (s *Store) parseTurn(ctx context.Context, org db.Org, folderKey, size int64) (time.Time, error) {
	return db.One[time.Time](ctx, s.db, `
		SELECT least(now(), greatest(`+firstTurn+`, `+nextInQueue+`, (
			SELECT turn FROM files
			WHERE org = @org AND folder_key = @folder AND (size_bytes > 1048576) = @large AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1)))`,
		pgx.StrictNamedArgs{"queue": queueOf(size), "org": org, "folder": folderKey, "large": size > largeBytes})
}

// embedTurn is where the next batch of a folder begins.
func (s *Store) embedTurn(ctx context.Context, org db.Org, folderKey int64, space int16) (time.Time, error) {
	return db.One[time.Time](ctx, s.db, `
		SELECT least(now(), greatest(`+firstTurn+`, `+nextInQueue+`, (
			SELECT turn FROM embed_batches
			WHERE org = @org AND folder_key = @folder AND space_id = @space AND turn IS NOT NULL
			ORDER BY turn DESC LIMIT 1)))`,
		pgx.StrictNamedArgs{"queue": QueueEmbed, "org": org, "folder": folderKey, "space": space})
}

// turns puts jobs into the queue at their turn.
type turns struct{ river.HookDefaults }

// InsertBegin implements rivertype.HookInsertBegin.
func (*turns) InsertBegin(_ context.Context, params *rivertype.JobInsertParams) error {
	if job, ok := params.Args.(interface{ begins() time.Time }); ok && !job.begins().IsZero() {
		at := job.begins()
		params.ScheduledAt = &at
	}
	return nil
}
