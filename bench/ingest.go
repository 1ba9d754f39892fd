package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// ingestAndSearch measures ingestion against COPY, each time with a new home. Then it measures searches in the data of
// the last ingestion, after the vectors are indexed.
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
		loaded := &ingestion{bench: b, instance: s, documents: documents, vectors: vectors}
		err = loaded.measure(ctx, &row)
		if err == nil && pass == b.Passes-1 {
			row.settle(median)
			b.report.add(row)
			err = b.search(ctx, loaded, name, settings)
		} else {
			err = errors.Join(err, s.stop())
		}
		if err = errors.Join(err, os.RemoveAll(home)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(b.work, "documents"))
}

// measure measures the time from the upload until every file is completed, and the time of a COPY of the resulting
// rows.
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
	usedBefore, start := in.used(), time.Now()
	if in.took, err = in.ingest(ctx, conn, folder, in.documents); err != nil {
		return err
	}
	spent := in.used().since(usedBefore)
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM chunks WHERE org = $1`, benchOrg).Scan(&in.chunks); err != nil {
		return err
	}
	if in.vectors && in.chunks >= vectorIndexRows {
		if err := poll(ctx, lookEvery, func() (bool, error) { return indexed(ctx, conn, "chunk_vectors") }); err != nil {
			return err
		}
		in.took.indexed = time.Since(start)
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
