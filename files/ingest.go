package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/grep"
)

// parseWorker makes the text and the chunks of a file.
type parseWorker struct{ worker[ParseArgs] }

func (w *parseWorker) Work(ctx context.Context, job *river.Job[ParseArgs]) error {
	err := w.store.ingest(ctx, job.Args)
	if unreadable, ok := errors.AsType[*document.UnreadableError](err); ok {
		return w.store.failParsing(ctx, job.Args, unreadable.Error())
	}
	if wasCutShort(ctx, err) && overruns(job.JobRow)+1 >= maxOverruns {
		bounded, cancel := embed.Noting(ctx)
		defer cancel()
		return w.store.failParsing(bounded, job.Args,
			"parsing this file takes too long or too much memory; split it into smaller files")
	}
	return err
}

// source is a file to parse.
type source struct {
	Key           int64  `db:"key"`
	ID            string `db:"id"`
	Org           db.Org `db:"org"`
	FolderKey     int64  `db:"folder_key"`
	Name          string `db:"name"`
	MediaType     string `db:"media_type"`
	SizeBytes     int64  `db:"size_bytes"`
	ChunkTokens   int    `db:"chunk_tokens"`
	OverlapTokens int    `db:"overlap_tokens"`
	Previous      int    `db:"previous"` // the generation before, 0 if the file has no text
	Replaces      *int64 `db:"replaces"` // the file that this one replaces, nil if none
}

// parsed is the text of a file, and its chunks.
type parsed struct {
	document.Text
	chunks []chunker.Chunk
}

// ingest makes the wanted generation of a file. It does nothing if the file was deleted or another generation is
// wanted.
func (s *Store) ingest(ctx context.Context, job ParseArgs) error {
	src, err := s.startParsing(ctx, job)
	if err != nil {
		return ifNotFound(err, nil)
	}
	in := document.Input{MediaType: src.MediaType, SizeBytes: src.SizeBytes,
		Body: &Download{SizeBytes: src.SizeBytes, Key: src.Key, ctx: ctx, store: s, org: src.Org}}
	held, err := s.startReading(ctx, src.Org, in)
	if err != nil {
		return err
	}
	defer held.shrink(0)
	p, err := s.parse(ctx, src, in)
	if err != nil {
		return err
	}
	held.shrink(2 * int64(len(p.Text.Text))) // with its chunks
	return s.commit(ctx, job, src, p)
}

// startParsing marks the file as being parsed. ErrNotFound if this generation is no longer wanted.
func (s *Store) startParsing(ctx context.Context, job ParseArgs) (source, error) {
	return db.One[source](ctx, s.db, `
		UPDATE files f SET parse_started_at = now(), error = NULL, updated_at = now()
		FROM folders d
		WHERE f.org = $1 AND f.key = $2 AND f.wanted_generation = $3 AND f.generation < $3
		  AND d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		RETURNING f.key, f.id, f.org, f.folder_key, f.name, f.media_type, f.size_bytes, d.chunk_tokens, d.overlap_tokens,
		          f.generation AS previous, f.replaces`,
		job.Org, job.FileKey, job.Generation)
}

// failParsing stores why a generation cannot be made. It does nothing if this generation is no longer wanted.
func (s *Store) failParsing(ctx context.Context, job ParseArgs, reason string) error {
	id, err := db.One[string](ctx, s.db, `
		UPDATE files
		SET error = $4, turn = NULL, updated_at = now()
		WHERE org = $1 AND key = $2 AND wanted_generation = $3 AND generation < $3
		RETURNING id`,
		job.Org, job.FileKey, job.Generation, reason)
	if err == nil && s.o.Failed != nil {
		s.o.Failed(ctx, id, reason)
	}
	return ifNotFound(err, nil)
}

// parse reads the text of a document, and splits it into chunks.
func (s *Store) parse(ctx context.Context, src source, in document.Input) (parsed, error) {
	text, err := s.o.Read(ctx, in)
	if err != nil {
		return parsed{}, err
	}
	chunks := chunker.Split(text.Text, chunker.Options{Kind: kindOf(src.Name, in), SizeTokens: src.ChunkTokens,
		OverlapTokens: src.OverlapTokens})
	return parsed{Text: text, chunks: chunks}, nil
}

// kindOf returns the kind of a document's text: that of a PDF has no marks of its structure, that of other formats is
// Markdown.
func kindOf(name string, in document.Input) chunker.Kind {
	switch {
	case in.IsPDF():
		return chunker.Prose
	case in.IsComplex():
		return chunker.Markdown
	}
	return chunker.KindOf(name, in.MediaType)
}

// commit replaces the previous generation in one transaction: text, chunks, vectors to make and, if the file replaces
// another, that one's name and views.
func (s *Store) commit(ctx context.Context, job ParseArgs, src source, p parsed) error {
	err := s.inTx(ctx, func(in *Store) error {
		return inOrder(
			func() error { return in.lockWanted(ctx, job, src) },
			func() error { return in.deleteText(ctx, src) },
			func() error { return in.storeText(ctx, job, src, p) },
			func() error { return in.lockFolder(ctx, src.Org, src.FolderKey, "SHARE") },
			func() error { return in.takePlace(ctx, src) },
			func() error { return in.finishParsing(ctx, job, p) },
			func() error { return in.addBatches(ctx, job, src, len(p.chunks)) },
			func() error {
				if job.KeepsClosed {
					return nil
				}
				return in.openUploaded(ctx, src)
			})
	})
	if err == nil {
		s.search.Words.Grew(src.Org, src.FolderKey, len(p.chunks))
	}
	return ifNotFound(err, nil) // the file or its folder was deleted, or another generation is wanted
}

// finishParsing records the generation that the file now has.
func (s *Store) finishParsing(ctx context.Context, job ParseArgs, p parsed) error {
	return s.exec(ctx, `
		UPDATE files
		SET generation = @generation, charset = @charset, chars = @chars, lines = @lines, pages = @pages, chunks = @chunks,
		    error = NULL, replaces = NULL, turn = NULL, updated_at = now()
		WHERE key = @key AND org = @org`,
		pgx.StrictNamedArgs{"generation": job.Generation, "charset": p.Charset, "chars": utf8.RuneCountInString(p.Text.Text),
			"lines": chunker.Lines(p.Text.Text), "pages": p.Pages, "chunks": len(p.chunks), "key": job.FileKey,
			"org": job.Org})
}

// lockWanted locks the file that this one replaces, then this one. ErrNotFound if this generation is no longer wanted.
// Files are always locked before folders, and folders before agents.
func (s *Store) lockWanted(ctx context.Context, job ParseArgs, src source) error {
	if src.Replaces != nil {
		if err := s.exec(ctx, `
			SELECT FROM files WHERE org = $1 AND key = $2 FOR UPDATE`, job.Org, *src.Replaces); err != nil {
			return err
		}
	}
	_, err := db.One[int64](ctx, s.db, `
		SELECT key FROM files WHERE org = $1 AND key = $2 AND wanted_generation = $3 AND generation < $3 FOR NO KEY UPDATE`,
		job.Org, job.FileKey, job.Generation)
	return err
}

// deleteText deletes the previous generation, if there is one.
func (s *Store) deleteText(ctx context.Context, src source) error {
	if src.Previous == 0 {
		return nil
	}
	var batch pgx.Batch
	for _, table := range []string{"file_segments", "chunks", "embed_batches", "embed_refusals"} {
		batch.Queue(`DELETE FROM `+table+` WHERE org = $1 AND file_key = $2`, src.Org, src.Key)
	}
	if err := s.db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("delete the previous text: %w", err)
	}
	return nil
}

// storeText stores the segments and chunks of a generation.
func (s *Store) storeText(ctx context.Context, job ParseArgs, src source, p parsed) error {
	segments, stop := copyRows(grep.Segments(p.Text.Text), func(g grep.Segment) []any {
		return []any{src.Key, job.Generation, g.Ordinal, src.Org, g.FirstLine, g.Lines, g.Continues, g.Text}
	})
	defer stop()
	columns := []string{"file_key", "generation", "ordinal", "org", "first_line", "lines", "continues", "text"}
	if _, err := s.db.CopyFrom(ctx, pgx.Identifier{"file_segments"}, columns, segments); err != nil {
		return fmt.Errorf("store the text: %w", err)
	}
	paging := Paging{Starts: p.Pages}
	chunks := pgx.CopyFromSlice(len(p.chunks), func(i int) ([]any, error) {
		c := p.chunks[i]
		lex := embed.Document(searchable(src.Name, c))
		id, err := uuid.NewV7() // ascending, so that their index grows at its end
		return []any{id, src.Key, job.Generation, i, src.Org, src.FolderKey, c.FirstLine, c.LastLine, c.StartByte,
			c.OverlapBytes, strings.ToValidUTF8(c.Heading, ""), c.Text, lex.Vector, lex.Terms,
			paging.stored(c.FirstLine), paging.stored(c.LastLine)}, err
	})
	columns = []string{"id", "file_key", "generation", "ordinal", "org", "folder_key", "first_line", "last_line",
		"start_byte", "overlap_bytes", "heading", "text", "lex", "terms", "first_page", "last_page"}
	if _, err := s.db.CopyFrom(ctx, pgx.Identifier{"chunks"}, columns, chunks); err != nil {
		return fmt.Errorf("store the chunks: %w", err)
	}
	return nil
}

// searchable returns the text by which a chunk is found: the file's name and the headings above it count as its words.
func searchable(name string, c chunker.Chunk) string {
	return name + "\n" + c.Heading + "\n" + c.Text
}

// copyRows turns a sequence into the rows of a COPY. The caller calls stop when the COPY is over.
func copyRows[T any](seq iter.Seq[T], row func(T) []any) (rows pgx.CopyFromSource, stop func()) {
	next, stop := iter.Pull(seq)
	return pgx.CopyFromFunc(func() ([]any, error) {
		v, ok := next()
		if !ok {
			return nil, nil
		}
		return row(v), nil
	}), stop
}

// takePlace gives the file the views, open or closed, that agents have of the file that it replaces, and deletes the
// replaced file.
func (s *Store) takePlace(ctx context.Context, src source) error {
	if src.Replaces == nil {
		return nil
	}
	old, err := db.One[fileRef](ctx, s.db, `
		SELECT o.key, o.id FROM files f JOIN files o ON o.key = f.replaces
		WHERE f.key = $1 AND f.org = $2 AND o.org = $2`, src.Key, src.Org)
	if err != nil {
		return ifNotFound(err, nil)
	}
	return inOrder(
		func() error { return s.appendWhereOpen(ctx, src.Org, old.Key, event.FileClosed, old.ID) },
		func() error { return s.appendWhereOpen(ctx, src.Org, old.Key, event.FileOpened, src.ID) },
		func() error {
			return s.exec(ctx, `
				UPDATE agent_files a
				SET file_key = $3, last_used_seq = CASE WHEN a.is_open THEN h.seq ELSE a.last_used_seq END
				FROM agent_heads h
				WHERE a.org = $1 AND h.org = $1 AND a.file_key = $2 AND h.agent_id = a.agent_id`, src.Org, old.Key, src.Key)
		},
		func() error { return s.exec(ctx, `DELETE FROM files WHERE key = $1 AND org = $2`, old.Key, src.Org) })
}
