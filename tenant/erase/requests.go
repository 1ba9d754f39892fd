package erase

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// requests erases in the reasons of other erasures. The texts of erasures that wait for a decision stay, and are
// counted.
func (w *sweep) requests(ctx context.Context) error {
	type row struct {
		Key    int64    `db:"key"`
		Reason string   `db:"reason"`
		Texts  []string `db:"texts"`
	}
	for after := int64(0); ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT key, coalesce(reason, '') AS reason, CASE WHEN status = 'pending' THEN texts END AS texts FROM erasures
			WHERE org = $1 AND key > $2 AND key <> $3 AND (reason IS NOT NULL OR status = 'pending')
			ORDER BY key LIMIT $4`, w.org, after, w.e.Key, keysPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.Key
			for _, text := range r.Texts {
				w.leave("erasures.texts", len(w.m.find(text)))
			}
			text, n := w.m.erase(r.Reason)
			if w.count("erasures", n); n == 0 || w.dry {
				continue
			}
			if _, err := w.DB.Exec(ctx, `
				UPDATE erasures SET reason = $4 WHERE org = $1 AND key = $2 AND reason = $3`, w.org, r.Key, r.Reason,
				text); err != nil {
				return db.Error(err)
			}
		}
	}
}
