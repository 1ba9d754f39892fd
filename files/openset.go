package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files/grep"
	"github.com/loci-memory/loci/lru"
)

// openSet is the files that one agent has open, for nobody or for a user. A user who has no list of their own sees
// nobody's.
type openSet struct {
	*Store
	Reach

	org db.Org
}

func (s *Store) openSet(org db.Org, r Reach) openSet { return openSet{s, r, org} }

// owner is the key of the user whose list it is; 0 is nobody.
func (set openSet) owner() int64 { return set.Users.User() }

// own gives the user a list of their own, with what they see of nobody's, unless they have one. The caller holds the
// agent's lock.
func (set openSet) own(ctx context.Context) error {
	if set.owner() == 0 {
		return nil
	}
	return set.exec(ctx, `
		INSERT INTO agent_files (org, agent_id, user_key, file_key, is_open, pinned, first_line, line_count, last_used_seq,
		                         last_used_at, automatic)
		SELECT $1, $2, $3, o.file_key, o.is_open, o.pinned, o.first_line, o.line_count, o.last_used_seq, o.last_used_at,
		       o.automatic
		FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key
		JOIN agent_folders a ON a.org = f.org AND a.folder_key = f.folder_key AND a.agent_id = $2
		WHERE o.org = $1 AND f.org = $1 AND a.org = $1 AND o.agent_id = $2 AND o.user_key = 0
		  AND (a.user_key IS NULL OR a.user_key = $3)
		  AND NOT EXISTS (SELECT FROM agent_files s WHERE s.org = $1 AND s.agent_id = $2 AND s.user_key = $3)`,
		set.org, set.AgentID, set.owner())
}

// isOwn reports whether the user has a list of their own.
func (set openSet) isOwn(ctx context.Context) (bool, error) {
	if set.owner() == 0 {
		return true, nil
	}
	return db.One[bool](ctx, set.db, `
		SELECT EXISTS (SELECT FROM agent_files WHERE org = $1 AND agent_id = $2 AND user_key = $3)`,
		set.org, set.AgentID, set.owner())
}

// openFile is a file in an open set, with the range that is open.
type openFile struct {
	storedText
	LineRange
	ID     string `db:"id"`
	Name   string `db:"name"` // folder/name
	Seq    int64  `db:"last_used_seq"`
	Pinned bool   `db:"pinned"`

	Automatic bool `db:"automatic"` // opened by an attachment or an upload

	head *readSegment // segment in which its view begins; nil if it is not read yet
}

// files returns the open files, least recently used first. They do not change while the agent is locked.
func (set openSet) files(ctx context.Context) ([]openFile, error) {
	args := pgx.StrictNamedArgs{"org": set.org, "agent": set.AgentID}
	return db.All[openFile](ctx, set.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, o.last_used_seq, o.pinned, o.automatic, o.first_line,
		       o.line_count,
		       f.generation, f.lines, f.pages, f.media_type
		FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key
		JOIN folders d ON d.org = f.org AND d.key = f.folder_key
		JOIN agent_folders a ON a.org = d.org AND a.folder_key = d.key AND a.agent_id = @agent
		WHERE o.org = @org AND f.org = @org AND d.org = @org AND a.org = @org AND o.agent_id = @agent AND o.is_open
		  AND `+set.opened(args)+` AND `+set.Users.Where("a.user_key", args)+`
		ORDER BY o.last_used_seq, f.id`, args)
}

// lock locks the agent without an event, before a change that may turn out to be none. ErrNotFound if there is no such
// agent.
func (set openSet) lock(ctx context.Context) error {
	_, err := db.One[int64](ctx, set.db, `
		SELECT seq FROM agent_heads WHERE org = $1 AND agent_id = $2 FOR UPDATE`, set.org, set.AgentID)
	return db.OrNotFound(err, "there is no agent %s", set.AgentID)
}

// append appends an event of type t per id to the agent's log. This locks the agent until the transaction ends.
func (set openSet) append(ctx context.Context, t event.Type, ids ...string) ([]event.Event, error) {
	return event.Append(ctx, set.tx, set.org, mapped(ids, func(id string) event.Event {
		return event.Event{AgentID: set.AgentID, Type: t, RefID: id}
	})...)
}

// openedView is a range of a file to open.
type openedView struct {
	Org       db.Org
	Key       int64 // of the file
	Owner     int64 // key of the user for whom it opens; 0: nobody
	Lines     LineRange
	Automatic bool // an attachment or an upload opens the files
}

// setOpen opens a range of a file for the event's agent, at the event's position.
func (s *Store) setOpen(ctx context.Context, v openedView, e event.Event) error {
	return s.exec(ctx, `
		INSERT INTO agent_files (agent_id, user_key, file_key, org, is_open, first_line, line_count, last_used_seq,
		                         last_used_at, automatic)
		VALUES (@agent, @owner, @file, @org, true, @first, @count, @seq, @at, @automatic)
		ON CONFLICT (org, agent_id, user_key, file_key) DO UPDATE
		SET is_open = true, first_line = excluded.first_line, line_count = excluded.line_count,
		    last_used_seq = excluded.last_used_seq, last_used_at = excluded.last_used_at,
		    automatic = excluded.automatic`,
		pgx.StrictNamedArgs{"agent": e.AgentID, "owner": v.Owner, "file": v.Key, "org": v.Org, "first": v.Lines.Offset,
			"count": v.Lines.Length, "seq": e.Seq, "at": e.At, "automatic": v.Automatic})
}

// evict closes the least recently used files beyond the limit, except those with an id in fresh. It returns their
// names. The caller holds the agent's lock.
func (set openSet) evict(ctx context.Context, limit int, fresh map[string]bool) ([]string, error) {
	open, err := set.files(ctx)
	if err != nil {
		return nil, err
	}
	candidates := mapped(open, func(f openFile) lru.File { return lru.File{ID: f.ID, Seq: f.Seq, Pinned: f.Pinned} })
	evicted := lru.Evict(candidates, limit, fresh)
	return set.close(ctx, slices.DeleteFunc(open, func(f openFile) bool { return !slices.Contains(evicted, f.ID) }))
}

// close closes files of the set in the given order. It returns their names. The caller holds the agent's lock.
func (set openSet) close(ctx context.Context, open []openFile) ([]string, error) {
	names := mapped(open, func(f openFile) string { return f.Name })
	if len(open) == 0 {
		return names, nil
	}
	ids := mapped(open, func(f openFile) string { return f.ID })
	if _, err := set.append(ctx, event.FileClosed, ids...); err != nil {
		return nil, err
	}
	return names, set.exec(ctx, `
		UPDATE agent_files SET is_open = false, pinned = false, first_line = 0, line_count = NULL
		WHERE org = $1 AND agent_id = $2 AND file_key = ANY ($3) AND user_key = $4`,
		set.org, set.AgentID, mapped(open, func(f openFile) int64 { return f.Key }), set.owner())
}

// markUsed marks those of the files that the agent has open as used now, in the given order. It writes nothing if the
// order of use would not change, or the user has no list of their own.
func (set openSet) markUsed(ctx context.Context, fileIDs []string) error {
	if own, err := set.isOwn(ctx); err != nil || !own {
		return err
	}
	open, err := set.files(ctx)
	if err != nil {
		return err
	}
	var used []string
	keys := map[string]int64{}
	for _, f := range open {
		keys[f.ID] = f.Key
	}
	for _, id := range fileIDs {
		if keys[id] != 0 {
			used = append(used, id)
		}
	}
	latest := open[len(open)-len(used):]
	if slices.EqualFunc(used, latest, func(id string, f openFile) bool { return id == f.ID }) {
		return nil
	}
	return set.inTx(ctx, func(in *Store) error {
		written, err := in.openSet(set.org, set.Reach).append(ctx, event.FileUsed, used...)
		for i := 0; err == nil && i < len(written); i++ {
			err = in.exec(ctx, `
				UPDATE agent_files SET last_used_seq = $4, last_used_at = $5
				WHERE org = $1 AND agent_id = $2 AND file_key = $3 AND user_key = $6 AND is_open`,
				set.org, set.AgentID, keys[written[i].RefID], written[i].Seq, written[i].At, set.owner())
		}
		return err
	})
}

// limits returns the agent's current limits, which it reads under the agent's lock. It returns l if the store cannot
// read them.
func (set openSet) limits(ctx context.Context, l Limits) Limits {
	if set.o.Limits == nil {
		return l
	}
	current, err := set.o.Limits(ctx, set.db, set.org, []string{set.AgentID})
	if now, ok := current[set.AgentID]; ok && err == nil {
		return now
	}
	return l
}

// LineRange is a range of lines. Offset is from 0; Length nil means to the end.
type LineRange struct {
	Offset int  `db:"first_line"`
	Length *int `db:"line_count"`
}

// storedText is the text of one generation of a file.
type storedText struct {
	Key        int64 `db:"key"` // of the file
	Generation int   `db:"generation"`
	Lines      int   `db:"lines"`
	Paging
}

// readSegment is a segment of a text as it is read from the database.
type readSegment struct {
	grep.Segment
	Final bool `db:"final"` // it is the text's last segment
}

// checkAgent returns ErrNotFound if the organization does not have the agent.
func (set openSet) checkAgent(ctx context.Context) error {
	_, err := db.One[string](ctx, set.db, `SELECT id FROM agents WHERE org = $1 AND id = $2`, set.org, set.AgentID)
	return db.OrNotFound(err, "there is no agent %s", set.AgentID)
}
