package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed/endpoint"
)

// embedWidth is how many batches of a file are queued at a time. Each finished batch queues the next one, so that files
// take turns.
const embedWidth = 4

// batchOf returns how many chunks with chunkTokens tokens one job embeds.
func batchOf(chunkTokens int) int {
	return min(max(endpoint.MostTokens/max(chunkTokens, 1), 1), endpoint.MostTexts)
}

// vectors returns the table of the chunks' vectors. A file that is not parsed yet is expected to have one chunk per
// 1,000 bytes.
func (s *Store) vectors() endpoint.Vectors {
	return s.search.VectorTable(`
		SELECT coalesce(sum(rows), 0)::bigint FROM (
			SELECT sum(end_ordinal - first_ordinal) AS rows FROM embed_batches WHERE space_id = $1
			UNION ALL
			SELECT sum(1 + size_bytes / 1000) FROM files
			WHERE generation < wanted_generation AND error IS NULL AND NOT cancelled
		) waiting`, "org", "folder_key")
}

// addBatches adds the batches of new generations of files in one folder. If an endpoint is configured, it queues the
// first batches of each file. Files that fit in one batch share jobs.
func (s *Store) addBatches(ctx context.Context, org db.Org, all []*ingested) error {
	space := s.space()
	batches := batchesOf(all, space)
	if space == 0 || len(batches) == 0 {
		return nil
	}
	folder := all[0].src.FolderKey
	turn, err := s.embedTurn(ctx, org, folder, space)
	if err != nil {
		return err
	}
	jobs := jobsOf(batches, batchOf(all[0].src.ChunkTokens), turn)
	if err := s.exec(ctx, `
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key, turn)
		SELECT u.file, @space, u.generation, u.first, u.final, @org, @folder, u.turn
		FROM unnest(@files::bigint[], @generations::integer[], @firsts::integer[], @ends::integer[], @turns::timestamptz[])
			AS u (file, generation, first, final, turn)`,
		pgx.StrictNamedArgs{"space": space, "org": org, "folder": folder,
			"files":       mapped(batches, func(b *newBatch) int64 { return b.FileKey }),
			"generations": mapped(batches, func(b *newBatch) int { return b.Generation }),
			"firsts":      mapped(batches, func(b *newBatch) int { return b.FirstOrdinal }),
			"ends":        mapped(batches, func(b *newBatch) int { return b.end }),
			"turns":       mapped(batches, func(b *newBatch) *time.Time { return b.turn })}); err != nil {
		return err
	}
	return s.enqueue(ctx, jobs...)
}

// newBatch is a batch to add.
type newBatch struct {
	EmbedArgs
	end   int
	whole bool       // it is the file's only batch
	turn  *time.Time // nil if it is queued later
}

func batchesOf(all []*ingested, space int16) (batches []*newBatch) {
	for _, f := range all {
		most := batchOf(f.src.ChunkTokens)
		for first := 0; first < len(f.chunks); first += most {
			batches = append(batches, &newBatch{end: min(first+most, len(f.chunks)), whole: len(f.chunks) <= most,
				EmbedArgs: EmbedArgs{Org: f.src.Org, FileKey: f.src.Key, Generation: f.job.Generation, SpaceID: space,
					FirstOrdinal: first}})
		}
	}
	return batches
}

// jobsOf returns the jobs for the first batches of files, beginning at a turn, and gives these batches their turns. A
// job has one batch of one file, or several whole files with at most most chunks together.
func jobsOf(batches []*newBatch, most int, turn queue.Turn) (jobs []river.JobArgs) {
	for _, shared := range sharing(batches, most) {
		start, next := queue.At(turn.Start), turn.Next(batchLength)
		shared[0].Start = start
		var job river.JobArgs = shared[0].EmbedArgs
		if len(shared) > 1 {
			job = EmbedFilesArgs{Org: shared[0].Org, SpaceID: shared[0].SpaceID, Start: start,
				Files: mapped(shared, func(b *newBatch) FileGeneration { return FileGeneration{b.FileKey, b.Generation} })}
		}
		for _, b := range shared {
			b.turn = &next.Start
		}
		jobs, turn = append(jobs, job), next
	}
	return jobs
}

// sharing groups batches into jobs: the first embedWidth batches of a long file, each alone, and whole files together.
func sharing(batches []*newBatch, most int) (jobs [][]*newBatch) {
	chunks, ofFile := 0, 0
	for i, b := range batches {
		if ofFile++; b.FirstOrdinal == 0 {
			ofFile = 1
		}
		if ofFile > embedWidth {
			continue
		}
		if i > 0 && b.whole && batches[i-1].whole && chunks+b.end <= most {
			jobs[len(jobs)-1] = append(jobs[len(jobs)-1], b)
			chunks += b.end
		} else {
			jobs, chunks = append(jobs, []*newBatch{b}), b.end
		}
	}
	return jobs
}

// queueBatches queues jobs for each file's first batches without a job, at most each per file, at the turn of the
// file's folder. It must run in a transaction.
func (s *Store) queueBatches(ctx context.Context, org db.Org, space int16, fileKeys []int64, each int) error {
	type batch struct {
		EmbedArgs
		FolderKey int64 `db:"folder_key"`
	}
	batches, err := db.All[batch](ctx, s.db, `
		SELECT b.org, b.file_key, b.generation, b.space_id, b.first_ordinal, b.folder_key
		FROM unnest($3::bigint[]) AS f (key)
		CROSS JOIN LATERAL (
			SELECT * FROM embed_batches e
			WHERE e.org = $1 AND e.file_key = f.key AND e.space_id = $2 AND e.turn IS NULL
			ORDER BY e.first_ordinal
			LIMIT $4
			FOR UPDATE SKIP LOCKED
		) b
		ORDER BY b.folder_key, b.first_ordinal, b.file_key`, org, space, fileKeys, each)
	if err != nil || len(batches) == 0 {
		return err
	}
	jobs := make([]river.JobArgs, len(batches))
	turn := map[int64]queue.Turn{}
	keys, firsts, turns := make([]int64, len(batches)), make([]int, len(batches)), make([]time.Time, len(batches))
	for i, b := range batches {
		if _, known := turn[b.FolderKey]; !known {
			if turn[b.FolderKey], err = s.embedTurn(ctx, org, b.FolderKey, space); err != nil {
				return err
			}
		}
		b.Start = queue.At(turn[b.FolderKey].Start)
		turn[b.FolderKey] = turn[b.FolderKey].Next(batchLength)
		jobs[i], keys[i], firsts[i], turns[i] = b.EmbedArgs, b.FileKey, b.FirstOrdinal, turn[b.FolderKey].Start
	}
	if _, err := s.db.Exec(ctx, `
		UPDATE embed_batches b SET turn = u.turn
		FROM unnest($3::bigint[], $4::integer[], $5::timestamptz[]) AS u (file_key, first_ordinal, turn)
		WHERE b.org = $1 AND b.space_id = $2 AND b.file_key = u.file_key AND b.first_ordinal = u.first_ordinal`,
		org, space, keys, firsts, turns); err != nil {
		return err
	}
	return s.enqueue(ctx, jobs...)
}

// Index builds the index of the active space's vectors, as endpoint.Vectors.Index does.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, may func(rows int) bool,
	progress func(done, total int)) (built bool, err error) {
	return s.vectors().Index(ctx, pool, may, progress)
}

// IndexAll builds the missing indexes of all spaces in use. It returns their number.
func (s *Store) IndexAll(ctx context.Context, pool *pgxpool.Pool) (built int, err error) {
	return s.vectors().IndexAll(ctx, pool)
}

// ClearSpaces deletes the vectors and indexes of spaces that no server has used for a week. It returns the number of
// deleted vectors.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.vectors().ClearUnused(ctx, pool, func(ctx context.Context, unused []int16) error {
		return db.EachOrg(ctx, pool, func(org db.Org) error {
			_, err := pool.Exec(ctx, `DELETE FROM embed_batches WHERE org = $1 AND space_id = ANY ($2)`, org, unused)
			return err
		}, `SELECT DISTINCT org FROM embed_batches WHERE space_id = ANY ($1)`, unused)
	})
}
