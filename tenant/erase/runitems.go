package erase

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// runItem is an event of a background run.
type runItem struct {
	Seq  int64  `db:"seq"`
	Item string `db:"item"`

	value   any
	changed bool
}

// runItems erases in the events of background runs. The pieces of an answer there form one text.
func (w *sweep) runItems(ctx context.Context) error {
	runs, err := db.All[int64](ctx, w.DB, `SELECT DISTINCT run_key FROM run_items WHERE org = $1 ORDER BY run_key`, w.org)
	for _, run := range runs {
		if err == nil {
			err = w.itemsOfRun(ctx, run)
		}
	}
	return err
}

func (w *sweep) itemsOfRun(ctx context.Context, run int64) error {
	items, err := db.All[runItem](ctx, w.DB, `
		SELECT seq, item::text AS item FROM run_items WHERE org = $1 AND run_key = $2 ORDER BY seq`, w.org, run)
	if err != nil {
		return err
	}
	for i := range items {
		decoder := json.NewDecoder(strings.NewReader(items[i].Item))
		decoder.UseNumber() // keeps numbers that no float64 can hold
		if err := decoder.Decode(&items[i].value); err != nil {
			return err
		}
	}
	w.count("run_items", w.m.inItems(items))
	for _, r := range items {
		if w.dry || !r.changed {
			continue
		}
		after, err := json.Marshal(r.value)
		if err != nil {
			return err
		}
		if _, err := w.DB.Exec(ctx, `
			UPDATE run_items SET item = $4 WHERE org = $1 AND run_key = $2 AND seq = $3 AND item::text = $5`,
			w.org, run, r.Seq, after, r.Item); err != nil {
			return db.Error(err)
		}
	}
	return nil
}

// itemText is a text within an event of a run.
type itemText struct {
	item  *runItem
	text  string
	store func(string)
}

// inItems erases in events that each hold a piece of a longer text. Pieces of one text have the same message id and
// field. It returns the number of occurrences that span several pieces.
func (m *matcher) inItems(items []runItem) (n int) {
	texts, order := map[string][]itemText{}, []string{}
	for i := range items {
		object, _ := items[i].value.(map[string]any)
		id, _ := object["id"].(string)
		eachText(object, "", func(path, text string, store func(string)) {
			path = id + " " + path
			if texts[path] == nil {
				order = append(order, path)
			}
			texts[path] = append(texts[path], itemText{&items[i], text, store})
		})
	}
	for _, path := range order {
		pieces := make([]string, len(texts[path]))
		for i, t := range texts[path] {
			pieces[i] = t.text
		}
		after, k := m.eraseAcross(pieces, "")
		n += k
		for i, t := range texts[path] {
			if after[i] != t.text {
				t.store(after[i])
				t.item.changed = true
			}
		}
	}
	return n
}

// eachText calls do for each text in a JSON value that is not one of Loci's words or ids. path tells where the text is.
func eachText(value any, path string, do func(path, text string, store func(string))) {
	visit := func(name string, item any, store func(string)) {
		itemPath := path + "/" + name
		if text, ok := item.(string); !ok {
			eachText(item, itemPath, do)
		} else if !isOwn(name, text) {
			do(itemPath, text, store)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			visit(name, v[name], func(text string) { v[name] = text })
		}
	case []any:
		for i, item := range v {
			visit("", item, func(text string) { v[i] = text })
		}
	}
}

// eraseAcross treats pieces as one text, joined by between, and erases the occurrences that span more than one piece.
// The mark goes into the first of them. It returns the number of these occurrences.
func (m *matcher) eraseAcross(pieces []string, between string) (after []string, n int) {
	after = slices.Clone(pieces)
	if len(pieces) < 2 {
		return after, 0
	}
	found := m.find(strings.Join(pieces, between))
	start := 0
	for i, piece := range pieces {
		from, to := start, start+len(piece)
		start = to + len(between)
		var b strings.Builder
		copied := from
		for _, s := range found {
			if s.to <= from || s.from >= to || s.from >= from && s.to <= to {
				continue
			}
			b.WriteString(piece[copied-from : max(s.from, from)-from])
			if s.from >= from {
				b.WriteString(mark)
				n++
			}
			copied = min(s.to, to)
		}
		after[i] = b.String() + piece[copied-from:]
	}
	return after, n
}
