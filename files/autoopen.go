package files

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// readyFile is a file with text that may open by itself.
type readyFile struct {
	storedText
	ID string `db:"id"`
}

// openOldest opens a folder's oldest files with text while the agent has room. It needs the agent's lock.
func (set openSet) openOldest(ctx context.Context, folder Folder, at Attachment) error {
	open, err := set.files(ctx)
	if err != nil {
		return err
	}
	l := set.limits(ctx, at.Limits)
	if !l.opens(at.Opens) {
		return nil
	}
	ready, err := db.All[readyFile](ctx, set.db, `
		SELECT key, id, generation, lines, pages, media_type FROM files
		WHERE org = $1 AND folder_key = $2 AND generation > 0 AND replaces IS NULL
		ORDER BY created_at, key
		LIMIT $3
		FOR KEY SHARE SKIP LOCKED`, set.org, folder.Key, max(l.MaxOpen-len(open), 0)) // a locked file is being deleted
	if err != nil {
		return err
	}
	if ready, err = set.fitting(ctx, open, ready, l); err != nil {
		return err
	}
	events, err := set.append(ctx, event.FileOpened, mapped(ready, func(f readyFile) string { return f.ID })...)
	for i := 0; err == nil && i < len(events); i++ {
		err = set.setOpen(ctx, openedView{Org: set.org, Key: ready[i].Key, Automatic: true}, events[i])
	}
	return err
}

// opens reports whether files open by themselves: attachment decides unless it is nil, then the agent's setting.
func (l Limits) opens(attachment *bool) bool {
	if attachment != nil {
		return *attachment
	}
	return !l.OpensNone
}

// fitting returns the first of the ready files for which the prompt has room in addition to the open ones. They are
// shown whole; the last may be cut.
func (set openSet) fitting(ctx context.Context, open []openFile, ready []readyFile, l Limits) ([]readyFile, error) {
	room := l.automaticTokens()
	for _, f := range open {
		if f.Automatic {
			size, err := set.viewTokens(ctx, f.storedText, f.LineRange, l)
			if err != nil {
				return nil, err
			}
			room -= size
		}
	}
	for i, f := range ready {
		size, err := set.viewTokens(ctx, f.storedText, LineRange{}, l)
		if err != nil {
			return nil, err
		}
		if size > room && room < stubTokens {
			return ready[:i], nil
		}
		room -= size
	}
	return ready, nil
}

// viewTokens returns how many tokens a file that opens by itself takes in a prompt.
func (set openSet) viewTokens(ctx context.Context, text storedText, lines LineRange, l Limits) (int, error) {
	v, err := set.view(ctx, set.org, openFile{storedText: text, LineRange: lines}, l.ViewChars)
	return markupTokens + set.promptTokens(v.Text), err
}

// openUploaded opens a file that got its first text in the agents that its folder is attached to and that have room.
func (s *Store) openUploaded(ctx context.Context, src source) error {
	if s.o.Limits == nil || src.Previous > 0 {
		return nil
	}
	type agent struct {
		ID    string `db:"agent_id"`
		Opens *bool  `db:"opens"`
	}
	agents, err := db.All[agent](ctx, s.db, `
		SELECT a.agent_id, a.opens
		FROM agent_folders a
		WHERE a.org = $1 AND a.folder_key = $2
		  AND NOT EXISTS (SELECT FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.file_key = $3)
		ORDER BY a.agent_id
		FOR KEY SHARE OF a`, src.Org, src.FolderKey, src.Key)
	if err != nil || len(agents) == 0 {
		return err
	}
	limits, err := s.o.Limits(ctx, s.db, src.Org, mapped(agents, func(a agent) string { return a.ID }))
	if err != nil {
		return err
	}
	var events []event.Event
	for _, a := range agents {
		l := limits[a.ID]
		if !l.opens(a.Opens) {
			continue
		}
		has, err := s.openSet(src.Org, a.ID).hasRoom(ctx, src.Key, l)
		if err != nil {
			return err
		}
		if has {
			events = append(events, event.Event{AgentID: a.ID, Type: event.FileOpened, RefID: src.ID})
		}
	}
	if events, err = event.Append(ctx, s.tx, src.Org, events...); err != nil {
		return err
	}
	view := openedView{Org: src.Org, Key: src.Key, Automatic: true}
	for i := 0; err == nil && i < len(events); i++ {
		err = inOrder(
			func() error { return s.setOpen(ctx, view, events[i]) },
			func() error { return s.openSet(src.Org, events[i].AgentID).closeIfFull(ctx, src.ID) })
	}
	return err
}

// hasRoom reports whether an agent has room for one more file that opens by itself.
func (set openSet) hasRoom(ctx context.Context, fileKey int64, l Limits) (bool, error) {
	open, err := set.files(ctx)
	if err != nil || len(open) >= l.MaxOpen {
		return false, err
	}
	file, err := db.All[readyFile](ctx, set.db, `
		SELECT key, id, generation, lines, pages, media_type FROM files WHERE org = $1 AND key = $2`, set.org, fileKey)
	if err != nil {
		return false, err
	}
	fitting, err := set.fitting(ctx, open, file, l)
	return len(fitting) > 0, err
}

// closeIfFull closes a file that was just opened, if other files took the room before the agent was locked. It needs
// the agent's lock.
func (set openSet) closeIfFull(ctx context.Context, fileID string) error {
	open, err := set.files(ctx)
	if err != nil || len(open) <= set.limits(ctx, Limits{}).MaxOpen {
		return err
	}
	_, err = set.close(ctx, slices.DeleteFunc(open, func(f openFile) bool { return f.ID != fileID }))
	return err
}
