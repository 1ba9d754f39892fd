package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/db"
)

// answeredCall is a stored call that has a result, with the place of the message of the result.
type answeredCall struct {
	Appended
	CallID  string `db:"call_id"`
	Content []Part `db:"content"` // of the message
}

// dropRepeatedResults returns entries without those whose results the log has already, of which it notes the places.
// calls are the entries' own. A DraftError if an entry has another result of a call that has one.
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
			first, has := answered[id]
			switch {
			case calls.answers(id):
				return nil, &DraftError{At: e.at, Err: db.Invalid("the call %q has two results in the request: send one",
					db.Short(id))}
			case has && !first.repeatedBy(e.Content):
				return nil, &DraftError{At: e.at, Err: db.Conflict("the call %q has a result already, in %s, which stays: "+
					"leave this one out", db.Short(id), first.ID)}
			case has:
				a.out[e.at] = first.Appended
				a.out[e.at].Repeated, a.out[e.at].Orphans = true, []string{}
				once = slices.DeleteFunc(once, func(other *entry) bool { return other == e })
			}
		}
	}
	return once, nil
}

// answeredCalls reads the newest call of each of some ids that has a result, by these.
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

// answers reports whether the entries have a result that is paired with a call of an id.
func (p *pairing) answers(id string) bool {
	is := func(c *toolCall) bool { return c.ID == id && c.result != nil }
	return slices.ContainsFunc(p.made, is) || slices.ContainsFunc(p.answered, is)
}

// repeatedBy reports whether all parts of a message are results that the call's message has.
func (c answeredCall) repeatedBy(content []Part) bool {
	return !slices.ContainsFunc(content, func(p Part) bool {
		return p.Type != ToolReturn || !slices.ContainsFunc(c.Content, p.sameResult)
	})
}

// sameResult reports whether two results of a call say the same. What a long one shows names its own Clip.
func (p Part) sameResult(other Part) bool {
	same := other.Type == ToolReturn && p.CallID == other.CallID && p.IsError == other.IsError &&
		slices.EqualFunc(p.Images, other.Images, sameJSON) && slices.Equal(p.ImagesAt, other.ImagesAt)
	if p.Clip == nil || other.Clip == nil {
		return same && p.Clip == other.Clip && p.Text == other.Text
	}
	return same && p.Clip.SHA256 == other.Clip.SHA256
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
