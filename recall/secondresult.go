package recall

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/db"
)

// answeredCall is a stored call with a result, and the place of the message with that result.
type answeredCall struct {
	Appended
	CallID  string `db:"call_id"`
	Content []Part `db:"content"` // the message's content
}

// dropRepeatedResults drops entries if the log already has their results, and notes the places of those. calls pairs
// the calls and results of the entries. DraftError if an entry has a different result for a call that already has one.
func (a *appending) dropRepeatedResults(ctx context.Context, fresh []*entry, calls *pairing) ([]*entry, error) {
	var ids []string
	for _, e := range fresh {
		ids = append(ids, orphansOf(e.Content)...)
	}
	if len(ids) == 0 {
		return fresh, nil
	}
	answered, err := a.answeredCalls(ctx, ids)
	if err != nil {
		return nil, err
	}
	once := slices.Clone(fresh)
	for _, e := range fresh {
		for _, id := range orphansOf(e.Content) {
			first, isAnswered := answered[id]
			switch {
			case calls.answers(id):
				return nil, &DraftError{At: e.at, Err: db.Invalid("the call %q has two results in the request: send one",
					db.Short(id))}
			case isAnswered && !first.repeatedBy(e.Content):
				return nil, &DraftError{At: e.at, Err: db.Conflict("the call %q has a result already, in %s, which stays: "+
					"leave this one out", db.Short(id), first.ID)}
			case isAnswered:
				a.out[e.at] = first.Appended
				a.out[e.at].Repeated, a.out[e.at].Orphans = true, []string{}
				once = slices.DeleteFunc(once, func(other *entry) bool { return other == e })
			}
		}
	}
	return once, nil
}

// answeredCalls maps call id → the newest call with this id that has a result.
func (a *appending) answeredCalls(ctx context.Context, ids []string) (map[string]answeredCall, error) {
	list, err := db.All[answeredCall](ctx, a.db, `
		SELECT DISTINCT ON (t.call_id) t.call_id, 'message-' || m.id AS id, m.seq, m.position, m.tokens, m.otid, m.content,
		       '{}'::text[] AS orphans
		FROM tool_calls t
		JOIN messages m ON m.org = t.org AND m.conversation_key = t.conversation_key AND m.position = t.result_position
		WHERE t.org = $1 AND t.conversation_key = $2 AND t.call_id = ANY ($3)
		ORDER BY t.call_id, t.position DESC`, a.end.org, a.end.Key, ids)
	answered := map[string]answeredCall{}
	for _, c := range list {
		answered[c.CallID] = c
	}
	return answered, err
}

// answers reports whether the entries contain a result that is paired with the call with this id.
func (p *pairing) answers(id string) bool {
	is := func(c *toolCall) bool { return c.ID == id && c.result != nil }
	return slices.ContainsFunc(p.made, is) || slices.ContainsFunc(p.answered, is)
}

// repeatedBy reports whether every part of content is a result that the message of c also has.
func (c answeredCall) repeatedBy(content []Part) bool {
	return !slices.ContainsFunc(content, func(p Part) bool {
		return p.Type != ToolReturn || !slices.ContainsFunc(c.Content, p.sameResult)
	})
}

// sameResult reports whether two results of a call say the same. One of them may be stored outside the log.
func (p Part) sameResult(other Part) bool {
	same := other.Type == ToolReturn && p.CallID == other.CallID && p.IsError == other.IsError &&
		slices.EqualFunc(p.Images, other.Images, sameJSON) && slices.Equal(p.ImagesAt, other.ImagesAt)
	return same && (p.Clip == nil && other.Clip == nil && p.Text == other.Text || p.wholeSHA256() == other.wholeSHA256())
}

// wholeSHA256 returns the SHA-256 of the whole text of a result, as hexadecimal digits.
func (p Part) wholeSHA256() string {
	if p.Clip != nil {
		return p.Clip.SHA256
	}
	sum := sha256.Sum256([]byte(p.Text))
	return hex.EncodeToString(sum[:])
}

// likeStored returns parts in the form of stored ones that say the same: long results as the log has them.
func likeStored(parts, stored []Part) []Part {
	if len(parts) != len(stored) {
		return parts
	}
	parts = slices.Clone(parts)
	for i, p := range stored {
		if p.Clip != nil && parts[i].Clip == nil && parts[i].wholeSHA256() == p.Clip.SHA256 {
			parts[i].Text, parts[i].Clip = p.Text, p.Clip
		}
	}
	return parts
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
