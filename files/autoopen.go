package files

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// readyFile is a file with text, which may open by itself.
type readyFile struct {
	storedText
	ID string `db:"id"`
}

// openOldest opens a folder's oldest files with text as long as the agent has room. The caller holds the agent's lock.
func (set openSet) openOldest(ctx context.Context, folder Folder, at Attachment) error {
	open, err := set.files(ctx)
	if err != nil {
		return err
	}
	l := set.limits(ctx, at.Limits)
	if folder.Skills || !l.opens(at.Opens) {
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
	if err == nil {
		err = set.own(ctx)
	}
	for i := 0; err == nil && i < len(events); i++ {
		err = set.setOpen(ctx, openedView{Org: set.org, Key: ready[i].Key, Owner: set.owner(), Automatic: true}, events[i])
	}
	return err
}

// opens reports whether files open by themselves. The attachment decides; if it is nil, the agent's setting does.
func (l Limits) opens(attachment *bool) bool {
	if attachment != nil {
		return *attachment
	}
	return !l.OpensNone
}

// fitting returns the first ready files for which the prompt has room next to the open files. They are shown
// completely, except that the last one may be cut.
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

// openUploaded opens files of one folder that just got their first text, for the agents that have the folder and have
// room. errAlone if there are several files and at least one is to be opened; each is then opened in its own
// transaction.
func (s *Store) openUploaded(ctx context.Context, org db.Org, all []*ingested) error {
	all = slices.DeleteFunc(slices.Clone(all), func(f *ingested) bool { return f.src.Previous > 0 || f.job.KeepsClosed })
	if s.o.Limits == nil || len(all) == 0 {
		return nil
	}
	agents, err := s.withRoom(ctx, org, all)
	if err != nil {
		return err
	}
	var events []event.Event
	owner := int64(0) // of the folder
	for _, a := range agents {
		for _, f := range all {
			fits, err := a.fits(ctx, f.src.Key)
			if err != nil {
				return err
			}
			if fits && len(all) > 1 {
				return errAlone
			}
			if fits {
				owner = a.owner()
				events = append(events, event.Event{AgentID: a.AgentID, Type: event.FileOpened, RefID: f.src.ID})
			}
		}
	}
	if events, err = event.Append(ctx, s.tx, org, events...); err != nil {
		return err
	}
	file := all[0].src // if there are events, there is only one file
	for i := 0; err == nil && i < len(events); i++ {
		set := s.openSet(org, user{org, events[i].AgentID, owner}.reach())
		err = inOrder(
			func() error { return set.own(ctx) },
			func() error {
				return s.setOpen(ctx, openedView{Org: org, Key: file.Key, Owner: owner, Automatic: true}, events[i])
			},
			func() error { return set.closeIfFull(ctx, file.ID) })
	}
	return err
}

// roomy is the open set of an agent that may open more files.
type roomy struct {
	openSet
	open   []openFile
	limits Limits
}

// withRoom returns the agents that may open more files, and for which files of the folder open by themselves. If there
// is a single file, it leaves out agents that have that file already.
func (s *Store) withRoom(ctx context.Context, org db.Org, all []*ingested) (some []roomy, err error) {
	type agent struct {
		ID    string `db:"agent_id"`
		Owner int64  `db:"owner"`
		Opens *bool  `db:"opens"`
	}
	single := []int64{}
	if len(all) == 1 {
		single = append(single, all[0].src.Key)
	}
	agents, err := db.All[agent](ctx, s.db, `
		SELECT a.agent_id, coalesce(a.user_key, 0) AS owner, a.opens
		FROM agent_folders a
		WHERE a.org = $1 AND a.folder_key = $2
		  AND NOT EXISTS (SELECT FROM folders d WHERE d.org = $1 AND d.key = $2 AND d.skills)
		  AND NOT EXISTS (
			SELECT FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.file_key = ANY ($3))
		ORDER BY a.agent_id
		FOR KEY SHARE OF a`, org, all[0].src.FolderKey, single)
	if err != nil || len(agents) == 0 {
		return nil, err
	}
	limits, err := s.o.Limits(ctx, s.db, org, mapped(agents, func(a agent) string { return a.ID }))
	for i := 0; err == nil && i < len(agents); i++ {
		a, l := agents[i], limits[agents[i].ID]
		if !l.opens(a.Opens) {
			continue
		}
		set := roomy{openSet: s.openSet(org, user{org, a.ID, a.Owner}.reach()), limits: l}
		if set.open, err = set.files(ctx); len(set.open) < l.MaxOpen {
			some = append(some, set)
		}
	}
	return some, err
}

// fits reports whether the prompt has room for one more file that opens by itself.
func (set roomy) fits(ctx context.Context, fileKey int64) (bool, error) {
	file, err := db.All[readyFile](ctx, set.db, `
		SELECT key, id, generation, lines, pages, media_type FROM files WHERE org = $1 AND key = $2`, set.org, fileKey)
	if err != nil {
		return false, err
	}
	fitting, err := set.fitting(ctx, set.open, file, set.limits)
	return len(fitting) > 0, err
}

// closeIfFull closes a file that was just opened if other files took its room before the agent was locked. The caller
// holds the agent's lock.
func (set openSet) closeIfFull(ctx context.Context, fileID string) error {
	open, err := set.files(ctx)
	if err != nil || len(open) <= set.limits(ctx, Limits{}).MaxOpen {
		return err
	}
	_, err = set.close(ctx, slices.DeleteFunc(open, func(f openFile) bool { return f.ID != fileID }))
	return err
}
