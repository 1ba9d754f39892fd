package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// viewBefore is the view before a change, as stored in the change's row. If a pruning follows another pruning, the row
// does not contain the view's edits. They are then the edits in the row with frame Since, plus the edits of all
// prunings from there on.
type viewBefore struct {
	recall.ContextView
	Since int `json:"since,omitempty"` // 0: the row contains the edits
}

// maxPruningsSince bounds how many rows are read to find a view's edits.
const maxPruningsSince = 32

// before returns a conversation's view for a change's row. It leaves out edits where possible, because policies that
// prune before each prompt would store all edits of the view each time.
func (s *Store) before(ctx context.Context, org db.Org, c recall.Conversation, ch Change) (json.RawMessage, error) {
	view := viewBefore{ContextView: c.ContextView}
	if ch.pruned == nil {
		return json.Marshal(view)
	}
	since, err := db.One[int](ctx, s.DB, `
		SELECT coalesce((before ->> 'since')::integer, frame) FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND frame = $3 AND trigger = 'prune'`, org, c.Key, c.Version)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return nil, err
	}
	if err == nil && c.Version-since < maxPruningsSince {
		view.Since, view.Clipped = since, nil
	}
	return json.Marshal(view)
}

// readBefore returns a conversation's view before the change that made version frame, from the change's row.
func (s *Store) readBefore(ctx context.Context, org db.Org, conversation int64, frame int, raw json.RawMessage) (
	recall.ContextView, error) {
	var view viewBefore
	if err := json.Unmarshal(raw, &view); err != nil {
		return view.ContextView, fmt.Errorf("read a stored view: %w", err)
	}
	if view.Since == 0 {
		return view.ContextView, nil
	}
	type row struct {
		Before json.RawMessage `db:"before"`
		Edits  json.RawMessage `db:"edits"`
	}
	rows, err := db.All[row](ctx, s.DB, `
		SELECT before, edits FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND frame >= $3 AND frame < $4 AND trigger = 'prune'
		ORDER BY frame`, org, conversation, view.Since, frame)
	if err != nil {
		return view.ContextView, err
	}
	if len(rows) != frame-view.Since {
		return view.ContextView, db.NotFound("What the model saw then is not known: changes from the %dth to the %dth are "+
			"not stored", view.Since, frame-1)
	}
	edits, err := editsOfView(rows[0].Before)
	for i := 0; i < len(rows) && err == nil; i++ {
		var pruned []clip.Edit
		if pruned, err = editsIn([]json.RawMessage{rows[i].Edits}); err == nil {
			edits = clip.MergeEdits(edits, pruned)
		}
	}
	if err == nil {
		view.Clipped, err = json.Marshal(edits)
	}
	return view.ContextView, err
}

func editsIn(lists []json.RawMessage) (all []clip.Edit, err error) {
	for _, raw := range lists {
		if len(raw) == 0 {
			continue
		}
		var edits []clip.Edit
		if err := json.Unmarshal(raw, &edits); err != nil {
			return nil, fmt.Errorf("read the edits of a policy: %w", err)
		}
		all = append(all, edits...)
	}
	return all, nil
}

// editsOfView returns the edits in a stored view.
func editsOfView(raw json.RawMessage) (edits []clip.Edit, err error) {
	var view recall.ContextView
	if err := json.Unmarshal(raw, &view); err != nil {
		return nil, fmt.Errorf("read a stored view: %w", err)
	}
	if len(view.Clipped) > 0 {
		err = json.Unmarshal(view.Clipped, &edits)
	}
	return edits, err
}
