package erase

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/loci-memory/loci/db"
)

// Limits of what counts as a copy of a message, in characters without white space. Shorter texts occur by chance.
const (
	minCopyChars = 24
	maxQuotes    = 500 // sentences of a message that are searched elsewhere
)

// wholeMessage reads a message and its copies in forks, and prepares the sweep's matchers to find its texts.
func (w *sweep) wholeMessage(ctx context.Context, id string) error {
	key, err := w.messageKey(ctx, w.org, id)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.whole, err = db.All[int64](ctx, w.DB, `
		WITH RECURSIVE copy AS (
			SELECT conversation_key, position FROM messages WHERE org = $1 AND key = $2
			UNION
			SELECT c.key, copy.position FROM copy
			JOIN conversations c ON c.org = $1 AND c.forked_from = copy.conversation_key AND c.forked_to >= copy.position
		)
		SELECT m.key FROM copy JOIN messages m
		  ON m.org = $1 AND m.conversation_key = copy.conversation_key AND m.position = copy.position
		ORDER BY m.key`, w.org, key)
	if err != nil {
		return err
	}
	if len(w.e.Texts) == 0 {
		texts, err := w.Recall.WholeTexts(ctx, w.org, key)
		if err != nil {
			return err
		}
		w.erased = len(texts) == 0
		w.e.Texts = slices.DeleteFunc(texts, func(t string) bool { return chars(t) < minCopyChars })
	}
	w.find(w.e.Texts)
	return nil
}

// find makes the sweep look for the texts of a message everywhere, and for their sentences in texts made from messages.
func (w *sweep) find(texts []string) {
	if len(texts) == 0 {
		return
	}
	w.m, w.quotes = &matcher{}, &matcher{}
	w.m.add(texts...)
	w.quotes.add(texts...)
	var quotes []string
	for _, t := range texts {
		for _, sentence := range sentenceEnd.Split(t, maxQuotes) {
			if chars(sentence) >= minCopyChars && len(quotes) < maxQuotes {
				quotes = append(quotes, sentence)
			}
		}
	}
	w.quotes.add(quotes...)
}

// sentenceEnd matches what separates sentences and lines.
var sentenceEnd = regexp.MustCompile(`[.!?…]+\s+|\n+`)

// chars counts the characters of a text except white space.
func chars(text string) (n int) {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// message erases a message, its copies in forks, and the events of runs that show it. Before that, it stores the
// message's texts with the erasure, because a server that takes over has to find them elsewhere.
func (w *sweep) message(ctx context.Context, id string) error {
	if err := w.wholeMessage(ctx, id); err != nil || w.dry && w.erased {
		return err
	}
	if w.dry {
		w.count("messages", len(w.whole))
		return w.runsOf(ctx, id)
	}
	if err := db.Exec(ctx, w.DB, `UPDATE erasures SET texts = $3 WHERE org = $1 AND key = $2`, w.org, w.e.Key,
		w.e.Texts); err != nil {
		return err
	}
	for _, key := range w.whole {
		if err := db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
			m, err := w.Recall.With(tx).EraseMessage(ctx, w.org, key)
			if err != nil {
				return err
			}
			w.count("messages", m.Found)
			return w.note(ctx, tx, m)
		}); err != nil {
			return err
		}
	}
	return w.runsOf(ctx, id)
}

// runsOf erases the events of runs that show a message.
func (w *sweep) runsOf(ctx context.Context, id string) error {
	type row struct {
		Run  int64  `db:"run_key"`
		Seq  int64  `db:"seq"`
		Item string `db:"item"`
	}
	items, err := db.All[row](ctx, w.DB, `
		SELECT run_key, seq, item::text AS item FROM run_items WHERE org = $1 AND strpos(item::text, $2) > 0
		ORDER BY run_key, seq`, w.org, id)
	if err != nil {
		return err
	}
	for _, r := range items {
		if w.count("run_items", 1); w.dry {
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(r.Item), &value); err != nil {
			return err
		}
		item, err := json.Marshal(blank(value, ""))
		if err != nil {
			return err
		}
		if err := db.Exec(ctx, w.DB, `UPDATE run_items SET item = $4 WHERE org = $1 AND run_key = $2 AND seq = $3`, w.org,
			r.Run, r.Seq, item); err != nil {
			return err
		}
	}
	return nil
}

// blank replaces each text in a JSON value by a mark, except Loci's own words.
func blank(value any, name string) any {
	switch v := value.(type) {
	case string:
		ownFields := []string{"message_type", "date", "created_at", "name", "stop_reason", "run_type", "otid"}
		if slices.Contains(ownFields, name) || isOwn(name, v) {
			return v
		}
		return mark
	case []any:
		for i := range v {
			v[i] = blank(v[i], name)
		}
	case map[string]any:
		for key, item := range v {
			v[key] = blank(item, key)
		}
	}
	return value
}
