package working

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// MaxChurnTurns is how many turns a report may cover.
const MaxChurnTurns = 100

// minRewritten is in how many turns a field must be rewritten before it can be reported as flapping.
const minRewritten = 3

// Churn says how a record changed from turn to turn. A turn begins with a user's message.
type Churn struct {
	Turns  []TurnDiff  `json:"turns" doc:"The newest last; the first without the record before it."`
	Fields []FieldTurn `json:"fields" doc:"How often each field changed in these turns."`
}

// TurnDiff is how a record changed in a turn.
type TurnDiff struct {
	Seq     int64   `json:"seq" doc:"Position of the message that begins the turn."`
	Version int     `json:"version" doc:"Of the record at the end of the turn."`
	Changed []Field `json:"changed" doc:"The fields that changed."`
	Diff    string  `json:"diff" doc:"A unified diff of what prompts show; empty where nothing changed."`
}

// FieldTurn counts the turns in which a field changed.
type FieldTurn struct {
	Field     Field `json:"field" doc:"The field that is counted."`
	Changed   int   `json:"changed" doc:"Turns in which it changed."`
	Rewritten int   `json:"rewritten" doc:"Of these, turns that removed or replaced an entry, and did not only add some."`
	Returned  int   `json:"returned" doc:"Of these, turns that brought back an entry that an earlier turn had removed."`
	Flaps     bool  `json:"flaps" doc:"It was rewritten in more than half of the turns. Next and last_edit never flap."`

	gone map[string]bool
}

// Churn reports how a conversation's record changed in its newest turns, at most MaxChurnTurns.
func (s *Store) Churn(ctx context.Context, org db.Org, c recall.Conversation, turns int) (Churn, error) {
	turnStarts, err := s.Recall.Messages(ctx, org, recall.MessageFilter{AgentID: c.AgentID, Conversation: c.ID,
		Roles: []recall.Role{recall.User}}, db.Page{Limit: turns})
	if err != nil {
		return Churn{}, err
	}
	slices.Reverse(turnStarts)
	seqs := make([]int64, len(turnStarts))
	for i, m := range turnStarts {
		seqs[i] = m.Seq
	}
	states, err := s.statesAt(ctx, org, c, seqs)
	if err != nil {
		return Churn{}, err
	}
	return churnOf(seqs, states)
}

// statesAt returns the versions of a record before each of the positions in the agent's log, and then the newest
// version.
func (s *Store) statesAt(ctx context.Context, org db.Org, c recall.Conversation, seqs []int64) (
	[]RecordVersion, error) {
	var oldest int64
	if len(seqs) > 0 {
		oldest = seqs[0]
	}
	list, err := db.All[RecordVersion](ctx, s.DB, versionRows+`
		(seq >= $3 OR version = (
			SELECT max(version) FROM working_memory_versions WHERE org = $1 AND conversation_key = $2 AND seq < $3))
		ORDER BY version`, org, c.Key, oldest)
	var states []RecordVersion
	for _, seq := range append(slices.Clone(seqs), int64(1)<<62) {
		state := RecordVersion{}
		for _, v := range list {
			if v.Seq < seq {
				state = v
			}
		}
		states = append(states, sized(state))
	}
	return states, err
}

// churnOf compares the states before each turn and after the last one.
func churnOf(seqs []int64, states []RecordVersion) (c Churn, err error) {
	c.Turns = []TurnDiff{}
	for _, f := range Fields {
		c.Fields = append(c.Fields, FieldTurn{Field: f, gone: map[string]bool{}})
	}
	for i, seq := range seqs {
		before, after := states[i], states[i+1]
		t := TurnDiff{Seq: seq, Version: after.Version, Changed: []Field{}}
		for n := range c.Fields {
			f := &c.Fields[n]
			if f.compare(before.Record.Entries(f.Field), after.Record.Entries(f.Field)) {
				t.Changed = append(t.Changed, f.Field)
			}
		}
		if before.Version != after.Version {
			if t.Diff, err = diff(before, after); err != nil {
				return c, err
			}
		}
		c.Turns = append(c.Turns, t)
	}
	for n := range c.Fields {
		f := &c.Fields[n]
		f.Flaps = f.Rewritten >= minRewritten && 2*f.Rewritten > len(seqs) && f.Field != Next && f.Field != LastEdit
	}
	return c, nil
}

// compare counts a turn. It reports whether the field changed in it.
func (f *FieldTurn) compare(before, after []Entry) bool {
	lost, gained, returned := false, false, false
	for _, e := range before {
		if indexOf(after, e.Text) < 0 {
			lost, f.gone[e.Text] = true, true
		}
	}
	for _, e := range after {
		if indexOf(before, e.Text) < 0 {
			gained, returned = true, returned || f.gone[e.Text]
		}
	}
	f.Changed += count(lost || gained)
	f.Rewritten += count(lost)
	f.Returned += count(returned)
	return lost || gained
}

func count(happened bool) int {
	if happened {
		return 1
	}
	return 0
}
