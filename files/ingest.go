package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files/document"
)

// parseFile makes the text and the chunks of a file.
func (s *Store) parseFile(ctx context.Context, job *river.Job[ParseArgs]) error {
	err := s.ingest(ctx, job.Args)
	if unreadable, ok := errors.AsType[*document.UnreadableError](err); ok {
		return s.failParsing(ctx, job.Args, unreadable.Error())
	}
	if errors.Is(err, document.ErrGoesOn) {
		return river.JobSnooze(0) // the next attempt has a time limit of its own
	}
	if isDelayed(err) && job.Attempt >= job.MaxAttempts {
		return river.JobSnooze(maxPause) // the queue gives up a job that fails once more
	}
	if reason := cutShort(ctx, job.JobRow, err); reason != "" {
		bounded, cancel := endpoint.Noting(ctx)
		defer cancel()
		return s.failParsing(bounded, job.Args, reason)
	}
	return err
}

// ingest makes the wanted generation of a file. It does nothing if the file was deleted or another generation is
// wanted.
func (s *Store) ingest(ctx context.Context, job ParseArgs) error {
	started := &startedFile{job: job}
	if err := s.starts.do(ctx, job.Org, started); err != nil || started.src == nil {
		return err
	}
	src := *started.src
	log, err := s.pageLog(ctx, job, src)
	if err != nil {
		return err
	}
	input := document.Input{MediaType: src.MediaType, Charset: src.Encoding, SizeBytes: src.SizeBytes, Log: log,
		Body: &Download{SizeBytes: src.SizeBytes, Key: src.Key, ctx: ctx, store: s, org: src.Org, piece: started.original}}
	share, err := s.startReading(ctx, src.Org, input)
	if err != nil {
		return err
	}
	defer share.shrink(0)
	p, err := s.parse(ctx, src, input)
	if err != nil {
		return err
	}
	share.shrink(2 * int64(len(p.Text.Text))) // the text with its chunks
	all := []*ingested{{job: job, src: src, parsed: p}}
	if p.isSmall() && src.Previous == 0 && src.Replaces == nil {
		return s.commits.do(ctx, folderOf{src.Org, src.FolderKey}, all[0])
	}
	return s.commit(ctx, src.Org, all)
}

// startParsing marks files of an organization as being parsed, and reads the originals of small ones.
func (s *Store) startParsing(ctx context.Context, org db.Org, started []*startedFile) error {
	byKey := make(map[int64]*startedFile, len(started))
	keys, generations := make([]int64, len(started)), make([]int, len(started))
	for i, f := range started {
		keys[i], generations[i], byKey[f.job.FileKey] = f.job.FileKey, f.job.Generation, f
	}
	sources, err := db.All[source](ctx, s.db, `
		WITH wanted AS (
			SELECT f.key FROM unnest($2::bigint[], $3::integer[]) AS w (key, generation)
			JOIN files f ON f.org = $1 AND f.key = w.key AND f.wanted_generation = w.generation AND f.generation < w.generation
			ORDER BY f.key
			FOR NO KEY UPDATE OF f
		)
		UPDATE files f SET parse_started_at = now(), error = NULL, updated_at = now()
		FROM wanted w, folders d
		WHERE f.org = $1 AND f.key = w.key AND d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		RETURNING f.key, f.id, f.org, f.folder_key, f.name, f.media_type, f.size_bytes, d.chunk_tokens, d.overlap_tokens,
		          f.generation AS previous, f.replaces, coalesce(f.encoding, '') AS encoding,
		          CASE WHEN f.language_given THEN coalesce(f.language, '') ELSE '' END AS language`, org, keys, generations)
	var small []int64
	for i := range sources {
		byKey[sources[i].Key].src = &sources[i]
		if sources[i].SizeBytes <= smallBytes {
			small = append(small, sources[i].Key)
		}
	}
	if err != nil || len(small) == 0 {
		return err
	}
	type original struct {
		Key   int64  `db:"file_key"`
		Bytes []byte `db:"bytes"`
	}
	originals, err := db.All[original](ctx, s.db, `
		SELECT file_key, bytes FROM file_originals WHERE org = $1 AND file_key = ANY ($2) AND ordinal = 0`, org, small)
	for _, o := range originals {
		byKey[o.Key].original = o.Bytes
	}
	return err
}

// failParsing stores why a generation cannot be made. It does nothing if this generation is not wanted any more.
func (s *Store) failParsing(ctx context.Context, job ParseArgs, reason string) error {
	id, err := db.One[string](ctx, s.db, `
		UPDATE files
		SET error = $4, turn = NULL, pages_read = NULL, pages_found = NULL, updated_at = now()
		WHERE org = $1 AND key = $2 AND wanted_generation = $3 AND generation < $3
		RETURNING id`,
		job.Org, job.FileKey, job.Generation, reason)
	if err == nil && s.o.Failed != nil {
		s.o.Failed(ctx, id, reason)
	}
	return ifNotFound(err, nil)
}

// parse reads the text of a document and splits it into chunks.
func (s *Store) parse(ctx context.Context, src source, input document.Input) (p parsed, err error) {
	if !input.IsDocument() { // others are read by separate programs
		s.readers <- struct{}{}
		defer func() { <-s.readers }()
	}
	if p.Text, err = s.o.Read(ctx, input); err != nil {
		return parsed{}, err
	}
	p.chunks = chunker.Split(p.Text.Text, chunker.Options{Kind: kindOf(src.Name, input), SizeTokens: src.ChunkTokens,
		OverlapTokens: src.OverlapTokens})
	if p.isSmall() {
		p.lex = mapped(p.chunks, func(c chunker.Chunk) lexicon.Lex {
			return lexicon.DocumentIn(searchable(src.Name, c), src.Language)
		})
	}
	return p, nil
}

// kindOf returns the kind of a document's text. Text from a PDF is Prose, because it has no marks of its structure.
// Text from other complex formats is Markdown.
func kindOf(name string, input document.Input) chunker.Kind {
	switch {
	case input.IsPDF():
		return chunker.Prose
	case input.IsComplex():
		return chunker.Markdown
	}
	return chunker.KindOf(name, input.MediaType)
}

// commit stores new generations of files in one folder, in one transaction: text, chunks, and batches for vectors. If a
// file replaces another one, it takes over that file's name and views. If there are several files, each has its first
// text and replaces no file. errAlone if several files cannot be committed together.
func (s *Store) commit(ctx context.Context, org db.Org, all []*ingested) error {
	chunks := 0
	err := s.inTx(ctx, func(in *Store) error {
		wanted, err := in.lockWanted(ctx, org, all)
		if err != nil || len(wanted) == 0 {
			return err
		}
		chunks = 0
		for _, f := range wanted {
			chunks += len(f.chunks)
		}
		first := wanted[0].src
		return inOrder(
			func() error { return in.deleteText(ctx, first) },
			func() error { return in.storeText(ctx, wanted) },
			func() error { return in.lockFolder(ctx, org, first.FolderKey, "SHARE") },
			func() error { return in.takePlace(ctx, first) },
			func() error { return in.finishParsing(ctx, org, wanted) },
			func() error { return in.forgetPages(ctx, first) },
			func() error { return in.addBatches(ctx, org, wanted) },
			func() error { return in.openUploaded(ctx, org, wanted) })
	})
	if err == nil && chunks > 0 {
		s.search.Words.Grew(org, all[0].src.FolderKey, chunks)
	}
	return ifNotFound(err, nil) // the folder was deleted
}

// finishParsing records the generations that files now have.
func (s *Store) finishParsing(ctx context.Context, org db.Org, all []*ingested) error {
	return s.exec(ctx, `
		UPDATE files f
		SET generation = u.generation, charset = nullif(u.charset, ''), charset_sure = u.sure, chars = u.chars,
		    lines = u.lines, pages = @pages,
		    language = CASE WHEN f.language_given THEN f.language ELSE nullif(u.language, '') END,
		    omitted = u.omitted::jsonb, read_by = u.read_by::jsonb, pages_read = NULL, pages_found = NULL,
		    chunks = u.chunks, error = NULL, replaces = NULL, turn = NULL, updated_at = now(),
		    first_chunk = (
		        SELECT key FROM chunks c
		        WHERE c.org = @org AND c.file_key = u.key AND c.generation = u.generation AND c.ordinal = 0),
		    last_chunk = (
		        SELECT key FROM chunks c
		        WHERE c.org = @org AND c.file_key = u.key AND c.generation = u.generation AND c.ordinal = u.chunks - 1)
		FROM unnest(@keys::bigint[], @generations::integer[], @charsets::text[], @chars::bigint[], @lines::integer[],
		            @chunks::integer[], @omitted::text[], @sure::real[], @readby::text[],
		            @languages::text[])
		    AS u (key, generation, charset, chars, lines, chunks, omitted, sure, read_by, language)
		WHERE f.org = @org AND f.key = u.key`,
		pgx.StrictNamedArgs{"org": org, "pages": all[0].Pages,
			"keys":        mapped(all, func(f *ingested) int64 { return f.src.Key }),
			"generations": mapped(all, func(f *ingested) int { return f.job.Generation }),
			"charsets":    mapped(all, func(f *ingested) string { return f.Charset }),
			"chars":       mapped(all, func(f *ingested) int { return utf8.RuneCountInString(f.Text.Text) }),
			"lines":       mapped(all, func(f *ingested) int { return chunker.Lines(f.Text.Text) }),
			"chunks":      mapped(all, func(f *ingested) int { return len(f.chunks) }),
			"omitted":     mapped(all, (*ingested).omitted),
			"languages":   mapped(all, (*ingested).language),
			"sure":        mapped(all, (*ingested).sure),
			"readby":      mapped(all, (*ingested).readBy)})
}

// lockWanted locks the files that are to be replaced, then the given files. It returns the files with a
// generation that is still wanted. Files are always locked before folders, and folders before agents.
func (s *Store) lockWanted(ctx context.Context, org db.Org, all []*ingested) ([]*ingested, error) {
	if old := all[0].src.Replaces; old != nil {
		if err := s.exec(ctx, `
			SELECT FROM files WHERE org = $1 AND key = $2 FOR UPDATE`, org, *old); err != nil {
			return nil, err
		}
	}
	keys, err := db.All[int64](ctx, s.db, `
		SELECT f.key FROM unnest($2::bigint[], $3::integer[]) AS w (key, generation)
		JOIN files f ON f.org = $1 AND f.key = w.key AND f.wanted_generation = w.generation AND f.generation < w.generation
		ORDER BY f.key
		FOR NO KEY UPDATE OF f`, org, mapped(all, func(f *ingested) int64 { return f.src.Key }),
		mapped(all, func(f *ingested) int { return f.job.Generation }))
	return slices.DeleteFunc(slices.Clone(all), func(f *ingested) bool { return !slices.Contains(keys, f.src.Key) }), err
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

// storeText stores the segments and chunks of generations.
func (s *Store) storeText(ctx context.Context, all []*ingested) error {
	segments, stop := copyRows(eachOf(all, (*ingested).segments))
	defer stop()
	columns := []string{"file_key", "generation", "ordinal", "org", "first_line", "lines", "continues", "text"}
	if _, err := s.db.CopyFrom(ctx, pgx.Identifier{"file_segments"}, columns, segments); err != nil {
		return fmt.Errorf("store the text: %w", err)
	}
	chunks, stop := copyRows(eachOf(all, (*ingested).chunkRows))
	defer stop()
	columns = []string{"id", "file_key", "generation", "ordinal", "org", "folder_key", "first_line", "last_line",
		"start_byte", "overlap_bytes", "heading", "text", "lex", "terms", "first_page", "last_page"}
	if _, err := s.db.CopyFrom(ctx, pgx.Identifier{"chunks"}, columns, chunks); err != nil {
		return fmt.Errorf("store the chunks: %w", err)
	}
	return nil
}

// eachOf yields everything that seq yields for each item of a list.
func eachOf[T, U any](list []T, seq func(T, func(U) bool)) iter.Seq[U] {
	return func(yield func(U) bool) {
		for _, item := range list {
			more := true
			seq(item, func(u U) bool {
				more = yield(u)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// copyRows turns a sequence into the rows of a COPY. The caller calls stop after the COPY.
func copyRows(seq iter.Seq[[]any]) (rows pgx.CopyFromSource, stop func()) {
	next, stop := iter.Pull(seq)
	return pgx.CopyFromFunc(func() ([]any, error) {
		row, _ := next()
		return row, nil
	}), stop
}

// takePlace gives the file the views, open or closed, that agents have of the file that it replaces. It then deletes
// the replaced file.
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
		func() error { return s.deleteFiles(ctx, src.Org, `r.key = $2`, old.Key) })
}
