package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

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
