package erase

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
)

// passages erases in passages, including those of deleted archives. It deletes a passage if nothing is left of its
// text.
func (w *sweep) passages(ctx context.Context) error {
	type row struct {
		Key int64 `db:"key"`
		archival.Contents
	}
	for after := int64(0); ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT key, text, tags, metadata::text AS metadata FROM passages
			WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3`, w.org, after, keysPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.Key
			_, n := w.inContents(r.Contents)
			if w.count("passages", n); n == 0 || w.dry {
				continue
			}
			if err := w.Archival.Replace(ctx, w.org, r.Key, func(stored archival.Contents) archival.Contents {
				erased, _ := w.inContents(stored)
				return erased
			}); err != nil {
				return err
			}
		}
	}
}

// inContents returns the contents without the occurrences, and the number of occurrences. If nothing is left of the
// text, it becomes empty.
func (w *sweep) inContents(c archival.Contents) (erased archival.Contents, n int) {
	if erased.Text, n = w.m.erase(c.Text); n > 0 && onlyMarks(erased.Text) {
		erased.Text = ""
	}
	metadata := w.m.eraseJSON(c.Metadata, callersNames)
	erased.Metadata, n = metadata.text, n+metadata.n
	for _, t := range c.Tags {
		tag, k := w.m.erase(t)
		erased.Tags, n = append(erased.Tags, tag), n+k
	}
	return erased, n
}

// onlyMarks reports whether a text consists of erasure marks and signs between them.
func onlyMarks(text string) bool {
	return strings.Trim(strings.NewReplacer(mark, "", shortMark, "").Replace(text), " \t\r\n.,;:") == ""
}
