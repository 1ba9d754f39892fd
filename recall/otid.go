package recall

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
)

// An otid is the caller's own id of a message. It is unique in the visible log of an agent, so a request can be
// repeated without storing its messages twice. A message hidden by a reset or a deletion loses its otid.

// repeated is a message of the log with the otid of a draft.
type repeated struct {
	Appended
	Digest []byte `db:"otid_sha256"`
}

// release removes these otids from messages in the agent's hidden conversations, and those to take from all messages.
func (a *appending) release(ctx context.Context, otids []string) error {
	_, err := a.db.Exec(ctx, `
		UPDATE messages m SET otid = NULL, otid_sha256 = NULL
		FROM conversations c
		WHERE m.org = $1 AND m.agent_key = $2 AND m.otid = ANY ($3)
			AND c.org = m.org AND c.key = m.conversation_key
			AND (c.deleted_at IS NOT NULL OR m.conversation_key <> $4 AND m.otid = ANY ($5))`,
		a.org, a.end.AgentKey, otids, a.end.Key, a.take)
	return db.Error(err)
}

// dropRepeated appends a result to out for each entry of the chunk. If the agent's log already has an entry's otid, the
// result is the stored message's place. It returns the other entries.
func (a *appending) dropRepeated(ctx context.Context) (fresh []*entry, err error) {
	stored, err := a.repeated(ctx)
	if err != nil {
		return nil, err
	}
	a.out = append(a.out, make([]Appended, len(a.chunk))...)
	for i := range a.chunk {
		e := &a.chunk[i]
		if e.OTID == nil {
			fresh = append(fresh, e)
			continue
		}
		r, found := stored[*e.OTID]
		switch {
		case !found:
			fresh = append(fresh, e)
		case !bytes.Equal(r.Digest, e.digest):
			return nil, &DraftError{At: e.at, Err: db.Conflict(
				"the otid %q belongs to %s, which says something else; a new message needs an otid of its own",
				db.Short(*e.OTID), r.ID)}
		default:
			a.out[e.at] = r.Appended
			a.out[e.at].Repeated = true
		}
	}
	return fresh, nil
}

// repeated maps otid → message for those otids of the chunk that the agent's log already has.
func (a *appending) repeated(ctx context.Context) (map[string]repeated, error) {
	stored := map[string]repeated{}
	var otids []string
	for _, e := range a.chunk {
		if e.OTID == nil {
			continue
		}
		if a.otids[*e.OTID] {
			return nil, &DraftError{At: e.at,
				Err: db.Invalid("the otid %q is that of two messages of the request", db.Short(*e.OTID))}
		}
		a.otids[*e.OTID] = true
		otids = append(otids, *e.OTID)
	}
	if len(otids) == 0 {
		return stored, nil
	}
	if err := a.release(ctx, otids); err != nil {
		return nil, err
	}
	rows, err := db.All[repeated](ctx, a.db, `
		SELECT 'message-' || id AS id, seq, position, tokens, otid, otid_sha256, ARRAY(
			SELECT part ->> 'call_id' FROM json_array_elements(content) AS part WHERE `+isOrphan+`) AS orphans
		FROM messages
		WHERE org = $1 AND agent_key = $2 AND otid = ANY ($3)`, a.org, a.end.AgentKey, otids)
	for _, r := range rows {
		stored[*r.OTID] = r
	}
	return stored, err
}

// isOTIDRace reports whether another request stored a message with the same otid after this request looked.
func isOTIDRace(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && db.Constraint(pg) == "messages_otid_key"
}

// ByOTID returns the message with this otid in an agent's log.
func (s *Store) ByOTID(ctx context.Context, org db.Org, agent int64, otid string) (Message, error) {
	return db.One[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.agent_key = $2 AND m.otid = $3`, org, agent, otid)
}
