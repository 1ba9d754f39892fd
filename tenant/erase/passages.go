package erase

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
)

// passages erases in passages, those of deleted archives too. One of which nothing is left is deleted.
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
				left, _ := w.inContents(stored)
				return left
			}); err != nil {
				return err
			}
		}
	}
}

// inContents returns the contents of a passage without what is erased, and how often that was there. A text of which
// nothing is left is empty.
func (w *sweep) inContents(c archival.Contents) (left archival.Contents, n int) {
	if left.Text, n = w.m.erase(c.Text); n > 0 && onlyMarks(left.Text) {
		left.Text = ""
	}
	metadata := w.m.eraseJSON(c.Metadata, callersNames)
	left.Metadata, n = metadata.text, n+metadata.n
	for _, t := range c.Tags {
		tag, k := w.m.erase(t)
		left.Tags, n = append(left.Tags, tag), n+k
	}
	return left, n
}

// onlyMarks reports whether an erasure left nothing of a text but marks and signs between them.
func onlyMarks(text string) bool {
	return strings.Trim(strings.NewReplacer(mark, "", shortMark, "").Replace(text), " \t\r\n.,;:") == ""
}
