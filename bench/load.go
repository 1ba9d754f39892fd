package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// load is the data to load: documents to grep, and large ones.
type load struct {
	*bench
	home      string
	searched  []Document
	large     []Document // all except the last have the size of a large file
	few       []Document // a hundredth of all documents
	folders   []string   // of searched and of large
	grepAgent string
	openAgent string
}

func (b *bench) newLoad() (*load, error) {
	l := &load{bench: b}
	var err error
	if l.searched, err = b.corpus.write(filepath.Join(b.work, "searched"), b.GrepBytes, 21, needles()...); err != nil {
		return nil, err
	}
	dir := filepath.Join(b.work, "large")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for size := b.GrepBytes; size < b.BulkBytes || len(l.large) == 0; size += b.LargeBytes {
		d, err := b.corpus.prose(filepath.Join(dir, fmt.Sprintf("large-%d.txt", len(l.large))), b.LargeBytes-8192,
			uint64(100+len(l.large)))
		if err != nil {
			return nil, err
		}
		l.large = append(l.large, d)
	}
	d, err := b.corpus.prose(filepath.Join(dir, "small.txt"), b.SmallBytes, 31)
	if err != nil {
		return nil, err
	}
	l.large = append(l.large, d)
	l.few, err = b.corpus.write(filepath.Join(b.work, "few"), b.BulkBytes/100, 51)
	return l, err
}

func (l *load) ingest(ctx context.Context, s *instance) (time.Duration, error) {
	url, err := s.postgres()
	if err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	grepFolder, grepAgent, err := s.folder(ctx, "searched")
	if err != nil {
		return 0, err
	}
	openFolder, openAgent, err := s.folder(ctx, "large")
	if err != nil {
		return 0, err
	}
	l.grepAgent, l.openAgent, l.folders = grepAgent, openAgent, []string{grepFolder, openFolder}
	large, err := s.ingest(ctx, conn, openFolder, l.large)
	if err != nil {
		return 0, err
	}
	small, err := s.ingest(ctx, conn, grepFolder, l.searched)
	return large.all + small.all, err
}
