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
		Key      int64    `db:"key"`
		Text     string   `db:"text"`
		Tags     []string `db:"tags"`
		Metadata string   `db:"metadata"`
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
			text, n := w.m.erase(r.Text)
			metadata, k := w.m.eraseJSON(r.Metadata)
			n += k
			for i, t := range r.Tags {
				if r.Tags[i], k = w.m.erase(t); k > 0 {
					n += k
				}
			}
			if w.count("passages", n); n == 0 || w.dry {
				continue
			}
			if strings.Trim(strings.NewReplacer(mark, "", shortMark, "").Replace(text), " \t\r\n.,;:") == "" {
				text = ""
			}
			if err := w.Archival.Replace(ctx, w.org, r.Key,
				archival.Contents{Text: text, Tags: r.Tags, Metadata: []byte(metadata)}); err != nil {
				return err
			}
		}
	}
}
