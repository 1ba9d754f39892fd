package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// background measures a search by words while the built-in model embeds files, and the same search while the model is
// idle. It also measures how many chunks a second the model embeds while nobody searches.
func (b *bench) background(ctx context.Context) (err error) {
	home := filepath.Join(b.work, "background")
	s, _, err := b.serve(ctx, home, "LOCI_EMBEDDING=builtin")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(home)) }()
	searched, err := b.corpus.write(filepath.Join(b.work, "searched"), b.IngestBytes/64, 17)
	if err != nil {
		return err
	}
	work, err := b.corpus.write(filepath.Join(b.work, "queued"), b.IngestBytes/16, 19)
	if err != nil {
		return err
	}
	folder, _, err := s.folder(ctx, "searched")
	if err != nil {
		return err
	}
	if err := b.embedded(ctx, s, folder, searched); err != nil {
		return err
	}
	row := Row{What: "search by words while files are embedded: p50 of 1 client", Unit: "ms", AtMost: 1.2,
		Versus: "while nothing is embedded"}
	search := inFolder(folder, b.corpus.queries(b.Queries))
	for range b.Rounds {
		idle, err := searchFor(ctx, s, search, 1, b.SearchFor)
		if err != nil {
			return err
		}
		busy, err := b.whileEmbedding(ctx, s, work, search)
		if err != nil {
			return err
		}
		row.measured(busy.p50()*1e3, idle.p50()*1e3)
	}
	row.settle(median)
	say("%s: %.2f ms; %s: %.2f ms", row.What, row.Loci.Value, row.Versus, row.Against.Value)
	b.report.add(row)
	return nil
}

// inFolder searches a folder's files by words.
func inFolder(folder string, queries []string) searched {
	return searched{queries: queries, once: func(ctx context.Context, s *instance, query string) error {
		values := url.Values{"query": {query}, "search_mode": {"fts"}}
		return s.call(ctx, http.MethodGet, "/v1/folders/"+folder+"/search?"+values.Encode(), nil, nil)
	}}
}

// embedded uploads documents, and reports how many chunks a second the model embeds after they are parsed.
func (b *bench) embedded(ctx context.Context, s *instance, folder string, documents []Document) error {
	if err := s.uploadParsed(ctx, folder, documents); err != nil {
		return err
	}
	progress, err := s.vectors(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.awaitVectors(ctx); err != nil {
		return err
	}
	row := Row{What: "chunks of Go's sources that the built-in model embeds, nobody searching", Unit: "/s"}
	row.Loci.Raw = []float64{float64(progress.Waiting) / time.Since(start).Seconds()}
	row.settle(median)
	row.Note = fmt.Sprintf("%d chunks", progress.Waiting)
	say("%s: %.1f/s (%s)", row.What, row.Loci.Value, row.Note)
	b.report.add(row)
	return nil
}

// whileEmbedding searches while documents are embedded, and deletes the documents afterwards.
func (b *bench) whileEmbedding(ctx context.Context, s *instance, documents []Document, search searched) (l latencies,
	err error) {
	folder, _, err := s.folder(ctx, fmt.Sprint("queued ", time.Now().UnixNano()))
	if err != nil {
		return l, err
	}
	if err := s.uploadParsed(ctx, folder, documents); err != nil {
		return l, err
	}
	l, err = searchFor(ctx, s, search, 1, b.SearchFor)
	if err != nil {
		return l, err
	}
	if progress, err := s.vectors(ctx); err != nil || progress.Waiting == 0 {
		return l, errors.Join(err, errors.New("all files were embedded before the searches ended: there are too few"))
	}
	if err := s.call(ctx, http.MethodDelete, "/v1/folders/"+folder, nil, nil); err != nil {
		return l, err
	}
	return l, s.awaitVectors(ctx)
}

// uploadParsed uploads documents, and waits until a search by words can find all of them.
func (s *instance) uploadParsed(ctx context.Context, folder string, documents []Document) error {
	if err := s.upload(ctx, folder, documents); err != nil {
		return err
	}
	return poll(ctx, lookEvery, func() (bool, error) {
		counts, err := s.statuses(ctx, folder)
		return counts["embedding"]+counts["completed"] == len(documents), err
	})
}

// vectorProgress says how many texts wait for their vectors.
type vectorProgress struct {
	Waiting int64 `json:"waiting"`
}

func (s *instance) vectors(ctx context.Context) (p vectorProgress, err error) {
	err = s.call(ctx, http.MethodGet, "/v1/embeddings/progress", nil, &p)
	return p, err
}

// awaitVectors waits until no text waits for its vector.
func (s *instance) awaitVectors(ctx context.Context) error {
	return poll(ctx, lookEvery, func() (bool, error) {
		p, err := s.vectors(ctx)
		return p.Waiting == 0, err
	})
}
