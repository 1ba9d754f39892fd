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
// in.
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
	before := in.used()
	took, err := in.ingest(ctx, conn, folder, in.documents)
	if err != nil {
		return err
	}
	spent := in.used().since(before)
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM chunks WHERE org = $1`, benchOrg).Scan(&in.chunks); err != nil {
		return err
	}
	row.Loci.Raw = append(row.Loci.Raw, in.megabytes()/took.Seconds())
	copied, spentCopying, err := in.copy(ctx, conn)
	if err != nil {
		return fmt.Errorf("COPY: %w", err)
	}
	row.Against.Raw = append(row.Against.Raw, in.megabytes()/copied.Seconds())
	row.Note = fmt.Sprintf("%d files, %.0f MB, %d chunks", len(in.documents), in.megabytes(), in.chunks)
	say("%s: %s; Loci %.1f s (%s), COPY %.1f s (%s)", row.What, row.Note, took.Seconds(), spent, copied.Seconds(),
		spentCopying)
	if spent != (cpu{}) {
		row.Note += fmt.Sprintf("; %s; COPY %.1f s", spent, spentCopying.postgres)
	}
	return nil
}

// ingest uploads documents and waits until all files are completed.
func (s *instance) ingest(ctx context.Context, conn *pgx.Conn, folder string, documents []Document) (time.Duration,
	error) {
	if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
		return 0, err
	}
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.upload(groupCtx, folder, documents) })
	group.Go(func() error {
		return poll(groupCtx, lookEvery, func() (bool, error) { return completed(groupCtx, conn, folder, len(documents)) })
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	counts, err := s.statuses(ctx, folder)
	if err == nil && counts["completed"] != len(documents) {
		err = fmt.Errorf("%d files were uploaded, and the server says: %v", len(documents), counts)
	}
	return took, err
}

// lookEvery is how often an ingestion is looked at: more often would cost it time.
const lookEvery = 200 * time.Millisecond

// completed looks past the server, whose answers would cost it more.
func completed(ctx context.Context, conn *pgx.Conn, folder string, want int) (bool, error) {
	var done int
	var waiting bool
	var failure *string
	if err := conn.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE generation = wanted_generation), EXISTS (SELECT FROM embed_batches WHERE org = $1),
		       min(name || ': ' || error)
		FROM files
		WHERE org = $1 AND folder_key = (SELECT key FROM folders WHERE org = $1 AND id = $2)`, benchOrg, folder).
		Scan(&done, &waiting, &failure); err != nil {
		return false, err
	}
	if failure != nil {
		return false, fmt.Errorf("a file was not taken: %s", *failure)
	}
	return done == want && !waiting, nil
}
