package erase

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// maxNamed is how many unread files a report lists.
const maxNamed = 100

// files erases in the bytes of files, their text, chunks and vectors, and the n-gram index.
func (w *sweep) files(ctx context.Context) error {
	for after := int64(0); ; {
		keys, err := db.All[int64](ctx, w.DB, `
			SELECT key FROM files WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3`, w.org, after, keysPage)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			after = key
			erased, err := w.Files.EraseFrom(ctx, w.org, key, w.dry, w.m.erase)
			if err != nil {
				return err
			}
			if w.dry || !erased.Waiting {
				w.count("files", erased.Found)
			}
			if erased.Waiting {
				w.waiting++
			}
			if erased.Unread {
				w.report.Unread++
				w.report.UnreadIDs = append(w.report.UnreadIDs, erased.ID)[:min(w.report.Unread, maxNamed)]
			}
			if erased.Converted && !w.dry {
				w.report.Converted = append(w.report.Converted, erased.ID)
			}
		}
	}
}
