package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// MaxTurns is the largest number of turns that one call can store.
const MaxTurns = 500

type turnsArgs struct {
	Turns        json.RawMessage `json:"turns"`
	Conversation text            `json:"conversation_id"`
}

type turnArgs struct {
	Role text  `json:"role"`
	Text *text `json:"text"`
	ID   text  `json:"id"`
	At   text  `json:"at"`
}

// Turns reads the arguments of a tool that stores what was said; who is the tool's name. The arguments are a list of
// turns, each with a role, a text, and optionally an id and a time, and the conversation to store them in. If equal
// turns have the same id, drafts holds only the first. given is the number of turns in the call. ErrInvalid says what
// is wrong.
func Turns(who string, raw json.RawMessage) (drafts []recall.Draft, given int, conversation string, err error) {
	var args turnsArgs
	if err := decode(who, raw, &args); err != nil {
		return nil, 0, "", err
	}
	var items []json.RawMessage
	if all := unwrapped(args.Turns); len(all) > 0 && all[0] == '[' {
		if err := json.Unmarshal(all, &items); err != nil {
			return nil, 0, "", db.Invalid("turns is no list: %v", err)
		}
	} else if len(all) > 0 {
		items = append(items, all)
	}
	if n := len(items); n < 1 || n > MaxTurns {
		return nil, 0, "", db.Invalid("turns has %d items; it must have from 1 to %d, such as "+
			`[{"role": "user", "text": "…"}]`, n, MaxTurns)
	}
	byID := map[string]turnArgs{}
	for i, item := range items {
		t, draft, err := readTurn(fmt.Sprintf("turns[%d]", i), item)
		if err != nil {
			return nil, 0, "", err
		}
		if draft.OTID != nil {
			if same, again := byID[*draft.OTID]; again && same.equal(t) {
				continue
			}
			byID[*draft.OTID] = t
		}
		drafts = append(drafts, draft)
	}
	return drafts, len(items), string(args.Conversation), nil
}

func (t turnArgs) equal(other turnArgs) bool {
	texts := *t.Text == *other.Text
	t.Text, other.Text = nil, nil
	return texts && t == other
}

func readTurn(who string, raw json.RawMessage) (t turnArgs, d recall.Draft, err error) {
	if raw = unwrapped(raw); len(raw) == 0 || raw[0] != '{' {
		return t, d, db.Invalid("%s is %s; it must be an object with role and text", who, echo(cmp.Or(string(raw), "null")))
	}
	if err := decode(who, raw, &t); err != nil {
		return t, d, err
	}
	role := recall.Role(strings.ToLower(string(t.Role)))
	if !slices.Contains([]recall.Role{recall.User, recall.Assistant}, role) {
		return t, d, db.Invalid("%s.role is '%s'; it must be user or assistant", who, echo(string(t.Role)))
	}
	switch {
	case t.Text == nil:
		return t, d, db.Invalid("%s has no text; give what was said as %s.text", who, who)
	case strings.TrimSpace(string(*t.Text)) == "":
		return t, d, db.Invalid("%s.text is empty; leave the turn out", who)
	}
	d = recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: string(*t.Text)}}}
	if t.ID != "" {
		d.OTID = new(string(t.ID))
	}
	if t.At != "" {
		saidAt, err := time.Parse(time.RFC3339, string(t.At))
		if err != nil {
			return t, d, db.Invalid("%s.at is '%s'; it must be a time such as 2026-05-01T09:30:00Z", who, echo(string(t.At)))
		}
		d.CreatedAt = new(recall.Storable(saidAt))
	}
	return t, d, nil
}
