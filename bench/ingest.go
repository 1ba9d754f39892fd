package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// ingestAndSearch measures ingestion against COPY, each time into a new home, and search on what the last one brought
// in, once the vectors are indexed.
func (b *bench) ingestAndSearch(ctx context.Context, vectors bool) error {
	var settings []string
	name := "words"
	if vectors {
		name = "words and vectors"
		endpoint := newEmbedder()
		defer endpoint.Close()
		settings = []string{"LOCI_EMBEDDING_BASE_URL=" + endpoint.URL + "/v1", "LOCI_EMBEDDING_MODEL=fake"}
	}
	documents, err := b.corpus.write(filepath.Join(b.work, "documents"), b.IngestBytes, 11)
	if err != nil {
		return err
	}
	row := Row{What: "ingestion of text, " + name, Unit: "MB/s", AtLeast: 0.5,
		Versus: fmt.Sprintf("COPY of the same rows, %d connections", copiers)}
	for pass := range b.Passes {
		home := filepath.Join(b.work, "home")
		s, _, err := b.serve(ctx, home, settings...)
		if err != nil {
			return err
		}
		in := &ingestion{bench: b, instance: s, documents: documents, vectors: vectors}
		err = in.measure(ctx, &row)
		if err == nil && pass == b.Passes-1 {
			row.settle(median)
			b.report.add(row)
			err = b.search(ctx, in, name, settings)
		} else {
			err = errors.Join(err, s.stop())
		}
		if err = errors.Join(err, os.RemoveAll(home)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(b.work, "documents"))
}

// ingestion is one upload of all documents to a new server.
type ingestion struct {
	*bench
	*instance
	documents []Document
	vectors   bool
	agent     string
	chunks    int64
	took      ingested
}

// ingested says how long after the begin of an upload something was true of all files.
type ingested struct {
	words   time.Duration // words found them
	all     time.Duration // they were completed, with vectors where there are any
	indexed time.Duration // the index of their vectors was built; 0 where there is to be none
}

func (in *ingestion) megabytes() float64 {
	var n int64
	for _, d := range in.documents {
		n += d.Bytes
	}
	return float64(n) / 1e6
}

// measure takes the time of the upload until every file is completed, and that of a COPY of the rows that it made.
func (in *ingestion) measure(ctx context.Context, row *Row) error {
	url, err := in.postgres()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	folder, agent, err := in.folder(ctx, "documents")
	if err != nil {
		return err
	}
	in.agent = agent
	before, began := in.used(), time.Now()
	if in.took, err = in.ingest(ctx, conn, folder, in.documents); err != nil {
		return err
	}
	spent := in.used().since(before)
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM chunks WHERE org = $1`, benchOrg).Scan(&in.chunks); err != nil {
		return err
	}
	if in.vectors && in.chunks >= vectorIndexRows {
		if err := poll(ctx, lookEvery, func() (bool, error) { return indexed(ctx, conn, "chunk_vectors") }); err != nil {
			return err
		}
		in.took.indexed = time.Since(began)
	}
	row.Loci.Raw = append(row.Loci.Raw, in.megabytes()/in.took.all.Seconds())
	copied, spentCopying, err := in.copy(ctx, conn)
	if err != nil {
		return fmt.Errorf("COPY: %w", err)
	}
	row.Against.Raw = append(row.Against.Raw, in.megabytes()/copied.Seconds())
	row.Note = fmt.Sprintf("%d files, %.0f MB, %d chunks", len(in.documents), in.megabytes(), in.chunks)
	say("%s: %s; Loci %.1f s for words, %.1f s for all, %.1f s until vectors are indexed (%s); COPY %.1f s (%s)",
		row.What, row.Note, in.took.words.Seconds(), in.took.all.Seconds(), in.took.indexed.Seconds(), spent,
		copied.Seconds(), spentCopying)
	if spent != (cpu{}) {
		row.Note += fmt.Sprintf("; %s; COPY %.1f s", spent, spentCopying.postgres)
	}
	return nil
}

// ingest uploads documents and waits until all files are completed.
func (s *instance) ingest(ctx context.Context, conn *pgx.Conn, folder string, documents []Document) (took ingested,
	err error) {
	if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
		return took, err
	}
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.upload(groupCtx, folder, documents) })
	group.Go(func() error {
		return poll(groupCtx, lookEvery, func() (bool, error) {
			found, waiting, err := progress(groupCtx, conn, folder)
			if found == len(documents) && took.words == 0 {
				took.words = time.Since(began)
			}
			return found == len(documents) && !waiting, err
		})
	})
	if err := group.Wait(); err != nil {
		return took, err
	}
	took.all = time.Since(began)
	counts, err := s.statuses(ctx, folder)
	if err == nil && counts["completed"] != len(documents) {
		err = fmt.Errorf("%d files were uploaded, and the server says: %v", len(documents), counts)
	}
	return took, err
}

// lookEvery is how often an ingestion is looked at: more often would cost it time.
const lookEvery = 200 * time.Millisecond

// progress returns how many files of a folder words find, and whether any wait for vectors. It looks past the server,
// whose answers would cost it more.
func progress(ctx context.Context, conn *pgx.Conn, folder string) (found int, waiting bool, err error) {
	var failure *string
	if err := conn.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE generation = wanted_generation), EXISTS (SELECT FROM embed_batches WHERE org = $1),
		       min(name || ': ' || error)
		FROM files
		WHERE org = $1 AND folder_key = (SELECT key FROM folders WHERE org = $1 AND id = $2)`, benchOrg, folder).
		Scan(&found, &waiting, &failure); err != nil {
		return 0, false, err
	}
	if failure != nil {
		return 0, false, fmt.Errorf("a file was not taken: %s", *failure)
	}
	return found, waiting, nil
}

// vectorIndexRows is how many vectors a space has that the server indexes.
const vectorIndexRows = 50_000

// indexed reports whether a table of vectors has an index of a space.
func indexed(ctx context.Context, conn *pgx.Conn, table string) (yes bool, err error) {
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_index WHERE indisvalid AND starts_with(indexrelid::regclass::text, $1))`,
		table+"_space_").Scan(&yes)
	return yes, err
}
