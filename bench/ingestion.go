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

// ingested says how long after the begin of an upload certain states were reached for all files.
type ingested struct {
	words   time.Duration // searches by words found them
	all     time.Duration // they were completed, with vectors if there are any
	indexed time.Duration // the vector index was built; 0 if there is none
}

func (in *ingestion) megabytes() float64 {
	var n int64
	for _, d := range in.documents {
		n += d.Bytes
	}
	return float64(n) / 1e6
}

// ingest uploads documents, and waits until all files are completed.
func (s *instance) ingest(ctx context.Context, conn *pgx.Conn, folder string, documents []Document) (times ingested,
	err error) {
	if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
		return times, err
	}
	start := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.upload(groupCtx, folder, documents) })
	group.Go(func() error {
		return poll(groupCtx, lookEvery, func() (bool, error) {
			searchable, waiting, err := progress(groupCtx, conn, folder)
			if searchable == len(documents) && times.words == 0 {
				times.words = time.Since(start)
			}
			return searchable == len(documents) && !waiting, err
		})
	})
	if err := group.Wait(); err != nil {
		return times, err
	}
	times.all = time.Since(start)
	counts, err := s.statuses(ctx, folder)
	if err == nil && counts["completed"] != len(documents) {
		err = fmt.Errorf("%d files were uploaded, and the server says: %v", len(documents), counts)
	}
	return times, err
}

// progress returns how many of a folder's files can be found by words, and whether any wait for vectors. It asks the
// database directly, because asking the server would cost the server more.
func progress(ctx context.Context, conn *pgx.Conn, folder string) (searchable int, waiting bool, err error) {
	var failure *string
	if err := conn.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE generation = wanted_generation), EXISTS (SELECT FROM embed_batches WHERE org = $1),
		       min(name || ': ' || error)
		FROM files
		WHERE org = $1 AND folder_key = (SELECT key FROM folders WHERE org = $1 AND id = $2)`, benchOrg, folder).
		Scan(&searchable, &waiting, &failure); err != nil {
		return 0, false, err
	}
	if failure != nil {
		return 0, false, fmt.Errorf("a file was not taken: %s", *failure)
	}
	return searchable, waiting, nil
}
