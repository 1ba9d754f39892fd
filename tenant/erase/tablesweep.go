package erase

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/loci-memory/loci/db"
)

// tables erases in all tables that have no code of their own, and reports what it cannot change.
func (w *sweep) tables(ctx context.Context) error {
	all, err := w.Store.tables(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{w.requests, w.runItems} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, t := range all {
		m := w.matcherOf(t.name)
		for after := []string(nil); ; {
			hits, err := t.hits(ctx, w.DB, w.org, m.inColumn, after)
			if err != nil {
				return err
			}
			for _, h := range hits {
				if err := w.inRow(ctx, t, h); err != nil {
					return err
				}
				after = h.keys
			}
			if len(hits) < maxHits {
				break
			}
		}
	}
	return nil
}

// madeOfMessages are the tables with texts that quote sentences of messages.
var madeOfMessages = []string{"handovers", "handover_updates", "working_memories", "working_memory_versions",
	"children",
	"memory_files", "memory_file_versions", "replay_sessions", "replay_parts"}

// inColumn reports whether a value of a column has an occurrence.
func (m *matcher) inColumn(c column, value string) bool {
	if c.hasWord(value) {
		return false
	}
	if !c.isJSON() {
		return m.in(value)
	}
	e := m.eraseJSON(value, c.names())
	return e.n > 0 || e.kept > 0
}

// inRow erases in a row. Occurrences that cannot be changed stay, and are counted.
func (w *sweep) inRow(ctx context.Context, t table, h hit) error {
	after, found, m := map[int]string{}, map[int]int{}, w.matcherOf(t.name)
	for i, v := range h.values {
		if v == nil || t.columns[i].hasWord(*v) {
			continue
		}
		c := t.columns[i]
		text, n := m.erase(*v)
		if c.isJSON() {
			e := m.eraseJSON(*v, c.names())
			text, n = e.text, e.n
			w.leave(t.name+"."+c.Name, e.kept)
		}
		if n == 0 {
			continue
		}
		if found[i] = n; !t.keeps(i) {
			after[i] = text
		}
	}
	for i, n := range found {
		ok := !t.keeps(i)
		if ok && !w.dry {
			var err error
			if ok, err = w.store(ctx, t, h, erasedValue{i, after[i]}); err != nil {
				return err
			}
		}
		where := ErasedRow{Where: t.name + "." + t.columns[i].Name, Occurrences: n, Left: !ok}
		if err := w.place(ctx, t, h, where); err != nil {
			return err
		}
		if !ok {
			w.leave(t.name+"."+t.columns[i].Name, n)
			continue
		}
		w.count(t.name, n)
	}
	return nil
}

// store stores the new value of a column. It returns false if the table does not allow the value. If erasing makes a
// name equal to another row's name, a number or the row's key is appended.
func (w *sweep) store(ctx context.Context, t table, h hit, v erasedValue) (bool, error) {
	err := w.put(ctx, t, h, v)
	for n, text := 2, v.text; t.columns[v.column].IsKey && errors.Is(err, db.ErrConflict) && n <= maxSameNames; n++ {
		v.text = fmt.Sprintf("%s %d", text, n)
		err = w.put(ctx, t, h, v)
	}
	if errors.Is(err, db.ErrConflict) && !t.columns[v.column].isJSON() && !t.columns[v.column].IsKey && len(h.keys) > 0 {
		v.text += " " + h.keys[len(h.keys)-1]
		err = w.put(ctx, t, h, v)
	}
	if db.Constraint(err) != "" || errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// maxSameNames is how many keys may become equal by an erasure.
const maxSameNames = 100

func (w *sweep) put(ctx context.Context, t table, h hit, v erasedValue) error {
	return db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		if err := db.Resize(ctx, tx, t.row(w.org, h), func() error {
			return t.update(ctx, tx, w.org, h, v)
		}); err != nil {
			return err
		}
		return w.afterUpdate(ctx, tx, t.name, h)
	})
}

// afterUpdate updates whatever a table derives from its texts.
func (w *sweep) afterUpdate(ctx context.Context, tx pgx.Tx, name string, h hit) error {
	switch name {
	case "memory_files":
		return w.MemoryFiles.With(tx).Reindex(ctx, w.org, h.keys[0])
	case "memory_file_versions":
		_, err := tx.Exec(ctx, `
			UPDATE memory_file_versions SET redacted = true, sha256 = encode(sha256(convert_to(content, 'UTF8')), 'hex')
			WHERE org = $1 AND file_key = $2::text::bigint AND version = $3::text::integer`, w.org, h.keys[0], h.keys[1])
		return db.Error(err)
	// The measurements quote the session, and a quote may end within the text.
	case "replay_sessions":
		_, err := tx.Exec(ctx, `DELETE FROM replays WHERE org = $1 AND key = $2::text::bigint`, w.org, h.keys[0])
		return db.Error(err)
	}
	return nil
}
