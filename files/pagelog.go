package files

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// tellPagesEvery is how often the progress of a document is stored.
const tellPagesEvery = time.Second

// pageLog returns what follows the reading of a document with pages; nil for other files.
func (s *Store) pageLog(ctx context.Context, job ParseArgs, src source) (*document.PageLog, error) {
	input := document.Input{MediaType: src.MediaType}
	if !input.IsComplex() {
		return nil, nil
	}
	log := &document.PageLog{Read: s.tellPages(ctx, job)}
	type page struct {
		Number int    `db:"page"`
		Text   string `db:"text"`
	}
	pages, err := db.All[page](ctx, s.db, `
		SELECT page, text FROM read_pages WHERE org = $1 AND file_key = $2 ORDER BY page`, job.Org, job.FileKey)
	if err != nil {
		return nil, err
	}
	log.Kept = make(map[int]string, len(pages))
	for _, p := range pages {
		log.Kept[p.Number] = p.Text
	}
	log.Keep = func(ctx context.Context, number int, text string) error {
		return s.exec(ctx, `
			INSERT INTO read_pages (org, file_key, page, text)
			SELECT f.org, f.key, $3, $4 FROM files f WHERE f.org = $1 AND f.key = $2
			ON CONFLICT (org, file_key, page) DO UPDATE SET text = excluded.text`, job.Org, job.FileKey, number, text)
	}
	return log, nil
}

// tellPages returns a function that stores how many pages of a file are read.
func (s *Store) tellPages(ctx context.Context, job ParseArgs) func(read, total int) {
	var last time.Time
	return func(read, total int) {
		if now := time.Now(); now.Sub(last) < tellPagesEvery {
			return
		}
		last = time.Now()
		_ = s.exec(ctx, `
			UPDATE files SET pages_read = $4, pages_found = $5, updated_at = now()
			WHERE org = $1 AND key = $2 AND wanted_generation = $3 AND generation < $3`,
			job.Org, job.FileKey, job.Generation, read, total) // the reading does not depend on it
	}
}

// forgetPages deletes the pages and pictures that were kept for another attempt.
func (s *Store) forgetPages(ctx context.Context, src source) error {
	if !(document.Input{MediaType: src.MediaType}).IsComplex() {
		return nil
	}
	return s.exec(ctx, `DELETE FROM read_pages WHERE org = $1 AND file_key = $2`, src.Org, src.Key)
}
