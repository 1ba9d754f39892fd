package lab

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// state is a replay that is interrupted, as JSON.
type state struct {
	Next    int               `json:"next"`
	Visible []int             `json:"visible"` // positions
	Edits   []clip.Edit       `json:"edits"`
	Summary *clip.Summary     `json:"summary"`
	Trigger plan.TriggerState `json:"trigger"`
	Touched time.Time         `json:"touched"`
	Before  []shownMessage    `json:"before"`
	Lines   lineCache         `json:"lines"`
	Result  Result            `json:"result"`
}

// Save returns the state of the replay, with which Resume goes on.
func (r *Replaying) Save() (json.RawMessage, error) {
	s := state{Next: r.next, Visible: make([]int, len(r.view.Messages)), Edits: r.view.Edits, Summary: r.view.Summary,
		Trigger: r.trigger, Touched: r.touched, Before: r.before, Lines: r.lines, Result: r.result}
	for i, m := range r.view.Messages {
		s.Visible[i] = m.Position
	}
	return json.Marshal(s)
}

// Resume goes on with the replay of a session that was saved under the same settings.
func Resume(of *Session, under Settings, saved json.RawMessage) (*Replaying, error) {
	r := Begin(of, under)
	var s state
	if err := json.Unmarshal(saved, &s); err != nil {
		return nil, fmt.Errorf("read a saved replay: %w", err)
	}
	if s.Next > len(of.messages) {
		return nil, fmt.Errorf("read a saved replay: it is at message %d of %d", s.Next, len(of.messages))
	}
	for _, position := range s.Visible {
		if position < 1 || position > len(of.messages) {
			return nil, fmt.Errorf("read a saved replay: there is no message %d", position)
		}
		r.view.Messages = append(r.view.Messages, of.messages[position-1])
	}
	r.next, r.view.Edits, r.view.Summary = s.Next, s.Edits, s.Summary
	r.trigger, r.touched, r.before, r.result = s.Trigger, s.Touched, s.Before, s.Result
	if s.Lines != nil {
		r.lines = s.Lines
	}
	return r, nil
}
