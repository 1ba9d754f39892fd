package files

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// batch is a batch of chunks of one file, or one batch each of several files.
type batch struct {
	store *Store
	org   db.Org
	space int16
	parts []*filePart // one per file
}

// filePart is a batch of consecutive chunks of a file.
type filePart struct {
	EmbedArgs
	chunks []unembedded
	whole  bool // the file has no other chunks
}

type unembedded struct {
	FileKey    int64  `db:"file_key"`
	FileChunks int    `db:"file_chunks"`
	Key        int64  `db:"key"`
	Heading    string `db:"heading"`
	Text       string `db:"text"`
}

var errOtherSpace = river.JobCancel(errors.New("the space is not in use; its work is queued again when it is"))

// nextBatch reads a job's batch. It shortens the batch to the number of chunks that the endpoint can embed in time.
func (s *Store) nextBatch(ctx context.Context, job EmbedArgs, space endpoint.Space) (endpoint.Batch, error) {
	if space.ID != job.SpaceID {
		return nil, errOtherSpace
	}
	return s.readBatch(ctx, job.Org, job.SpaceID, []EmbedArgs{job})
}

// nextFiles reads those of a job's files that wait, as many as the endpoint can embed in time.
func (s *Store) nextFiles(ctx context.Context, job EmbedFilesArgs, space endpoint.Space) (endpoint.Batch, error) {
	if space.ID != job.SpaceID {
		return nil, errOtherSpace
	}
	return s.readBatch(ctx, job.Org, job.SpaceID, mapped(job.Files, func(f FileGeneration) EmbedArgs {
		return EmbedArgs{Org: job.Org, FileKey: f.FileKey, Generation: f.Generation, SpaceID: job.SpaceID}
	}))
}

// readBatch reads the batches of jobs for different files. It returns nil if none of them waits.
func (s *Store) readBatch(ctx context.Context, org db.Org, space int16, jobs []EmbedArgs) (endpoint.Batch, error) {
	size := s.o.Endpoint.Size()
	for i := 0; size < endpoint.MostTexts && i < len(jobs); i++ { // no batch is larger
		if err := s.shorten(ctx, jobs[i], size); err != nil {
			return nil, err
		}
	}
	chunks, err := db.All[unembedded](ctx, s.db, `
		SELECT c.file_key, f.chunks AS file_chunks, c.key, c.heading, c.text
		FROM unnest($3::bigint[], $4::integer[], $5::integer[]) AS j (file_key, generation, first_ordinal)
		JOIN embed_batches b ON b.org = $1 AND b.file_key = j.file_key AND b.space_id = $2 AND b.generation = j.generation
		                    AND b.first_ordinal = j.first_ordinal
		JOIN chunks c ON c.org = b.org AND c.file_key = b.file_key AND c.generation = b.generation
		             AND c.ordinal >= b.first_ordinal AND c.ordinal < b.end_ordinal
		JOIN files f ON f.org = c.org AND f.key = c.file_key AND NOT f.cancelled
		JOIN folders d ON d.org = c.org AND d.key = c.folder_key AND d.deleted_at IS NULL
		ORDER BY c.file_key, c.ordinal`, org, space, mapped(jobs, func(j EmbedArgs) int64 { return j.FileKey }),
		mapped(jobs, func(j EmbedArgs) int { return j.Generation }),
		mapped(jobs, func(j EmbedArgs) int { return j.FirstOrdinal }))
	if err != nil || len(chunks) == 0 {
		return nil, err
	}
	b := &batch{store: s, org: org, space: space}
	for _, job := range jobs {
		fileChunks := ofFile(chunks, job.FileKey)
		if len(fileChunks) > 0 && (len(b.parts) == 0 || len(fileChunks) <= size) {
			b.parts = append(b.parts, &filePart{EmbedArgs: job, chunks: fileChunks,
				whole: job.FirstOrdinal == 0 && len(fileChunks) == fileChunks[0].FileChunks})
			size -= len(fileChunks)
		}
	}
	return b, nil
}

// ofFile returns the chunks of a file.
func ofFile(chunks []unembedded, fileKey int64) []unembedded {
	return slices.DeleteFunc(slices.Clone(chunks), func(c unembedded) bool { return c.FileKey != fileKey })
}

// shorten keeps the first size chunks of a batch. The others become a batch that is queued later.
func (s *Store) shorten(ctx context.Context, job EmbedArgs, size int) error {
	_, err := s.db.Exec(ctx, `
		WITH long AS (
			SELECT * FROM embed_batches
			WHERE org = @org AND file_key = @file AND space_id = @space AND generation = @generation AND first_ordinal = @first
			  AND end_ordinal - first_ordinal > @size::integer
			FOR UPDATE
		), short AS (
			UPDATE embed_batches b SET end_ordinal = b.first_ordinal + @size::integer
			FROM long l
			WHERE b.org = @org AND b.file_key = l.file_key AND b.space_id = l.space_id AND b.generation = l.generation
			  AND b.first_ordinal = l.first_ordinal
		)
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key, error)
		SELECT file_key, space_id, generation, first_ordinal + @size::integer, end_ordinal, org, folder_key, error FROM long`,
		pgx.StrictNamedArgs{"org": job.Org, "file": job.FileKey, "space": job.SpaceID, "generation": job.Generation,
			"first": job.FirstOrdinal, "size": size})
	return err
}

func (b *batch) Items() (items []embed.Item) {
	for _, p := range b.parts {
		for _, c := range p.chunks {
			items = append(items, c.item())
		}
	}
	return items
}

// item returns the text of a chunk as the endpoint gets it.
func (c unembedded) item() embed.Item {
	if c.Heading == "" {
		return embed.Item{ID: c.Key, Text: c.Text}
	}
	return embed.Item{ID: c.Key, Text: c.Heading + "\n\n" + c.Text}
}

// Lock implements endpoint.Batch. It leaves out a file's chunks if the file was deleted, cancelled or got another text,
// or if another worker stored or shortened its batch.
func (b *batch) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	type file struct {
		Key    int64 `db:"key"`
		Folder int64 `db:"folder_key"`
	}
	files, err := db.All[file](ctx, tx, `
		SELECT key, folder_key FROM files
		WHERE org = $1 AND key = ANY ($2) AND NOT cancelled
		ORDER BY key
		FOR SHARE`, b.org, mapped(b.parts, func(p *filePart) int64 { return p.FileKey }))
	if err != nil {
		return nil, err
	}
	folders := make(map[int64]int64, len(files))
	for _, f := range files {
		folders[f.Key] = f.Folder
	}
	b.parts = slices.DeleteFunc(b.parts, func(p *filePart) bool { return folders[p.FileKey] == 0 })
	deleted, err := db.All[int64](ctx, tx, `
		DELETE FROM embed_batches b
		USING unnest(@files::bigint[], @generations::integer[], @firsts::integer[], @chunks::integer[])
			AS j (file_key, generation, first_ordinal, chunks)
		WHERE b.org = @org AND b.file_key = j.file_key AND b.space_id = @space AND b.generation = j.generation
		  AND b.first_ordinal = j.first_ordinal AND b.end_ordinal - b.first_ordinal = j.chunks
		RETURNING b.file_key`,
		pgx.StrictNamedArgs{"org": b.org, "space": b.space,
			"files":       mapped(b.parts, func(p *filePart) int64 { return p.FileKey }),
			"generations": mapped(b.parts, func(p *filePart) int { return p.Generation }),
			"firsts":      mapped(b.parts, func(p *filePart) int { return p.FirstOrdinal }),
			"chunks":      mapped(b.parts, func(p *filePart) int { return len(p.chunks) })})
	if err != nil {
		return nil, err
	}
	b.parts = slices.DeleteFunc(b.parts, func(p *filePart) bool { return !slices.Contains(deleted, p.FileKey) })
	locked := map[int64][]any{}
	for _, p := range b.parts {
		for _, c := range p.chunks {
			locked[c.Key] = []any{b.org, folders[p.FileKey]}
		}
	}
	return locked, nil
}

// Finish implements endpoint.Batch. For each file it counts the refused chunks and stores one reason. It queues the
// files' next batches.
func (b *batch) Finish(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	var more []int64
	for _, p := range b.parts {
		if err := p.refuse(ctx, tx, refused); err != nil {
			return err
		}
		if !p.whole {
			more = append(more, p.FileKey)
		}
	}
	if len(more) == 0 {
		return nil
	}
	return b.store.With(tx).queueBatches(ctx, b.org, b.space, more, 1)
}

// refuse counts the refused chunks that belong to the file.
func (p *filePart) refuse(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	chunks, reason := 0, ""
	for _, r := range refused {
		if slices.ContainsFunc(p.chunks, func(c unembedded) bool { return c.Key == r.ID }) {
			chunks, reason = chunks+1, cmp.Or(reason, r.Reason)
		}
	}
	if chunks == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO embed_refusals AS r (file_key, space_id, org, chunks, reason)
		VALUES (@file, @space, @org, @chunks, @reason)
		ON CONFLICT (org, file_key, space_id) DO UPDATE SET chunks = r.chunks + excluded.chunks`,
		pgx.StrictNamedArgs{"file": p.FileKey, "space": p.SpaceID, "org": p.Org, "chunks": chunks, "reason": reason})
	return err
}

func (b *batch) Note(ctx context.Context, reason string) error {
	_, err := b.store.db.Exec(ctx, `
		UPDATE embed_batches b SET error = $6
		FROM unnest($3::bigint[], $4::integer[], $5::integer[]) AS j (file_key, generation, first_ordinal)
		WHERE b.org = $1 AND b.file_key = j.file_key AND b.space_id = $2 AND b.generation = j.generation
		  AND b.first_ordinal = j.first_ordinal`,
		b.org, b.space, mapped(b.parts, func(p *filePart) int64 { return p.FileKey }),
		mapped(b.parts, func(p *filePart) int { return p.Generation }),
		mapped(b.parts, func(p *filePart) int { return p.FirstOrdinal }), reason)
	return err
}
