package lab

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// state is an interrupted replay in JSON.
type state struct {
	Next    int               `json:"next"`
	Visible []int             `json:"visible"` // positions
	Edits   []clip.Edit       `json:"edits"`
	Summary *clip.Summary     `json:"summary"`
	Trigger plan.TriggerState `json:"trigger"`
	Touched time.Time         `json:"touched"`
	Before  []shownMessage    `json:"before"`
	Lines   lineCache         `json:"lines"`
	Hidden  map[int]string    `json:"hidden_by"`
	Result  Result            `json:"result"`
}

// Save returns the state of the replay for Resume.
func (r *Replaying) Save() (json.RawMessage, error) {
	s := state{Next: r.next, Visible: make([]int, len(r.view.Messages)), Edits: r.view.Edits, Summary: r.view.Summary,
		Trigger: r.trigger, Touched: r.touched, Before: r.before, Lines: r.lines, Hidden: r.hiddenBy, Result: r.result}
	for i, m := range r.view.Messages {
		s.Visible[i] = m.Position
	}
	return json.Marshal(s)
}

// Resume continues a replay of the session that was saved under the same settings.
func Resume(session *Session, under Settings, saved json.RawMessage) (*Replaying, error) {
	r := Begin(session, under)
	var s state
	if err := json.Unmarshal(saved, &s); err != nil {
		return nil, fmt.Errorf("read a saved replay: %w", err)
	}
	if s.Next > len(session.messages) {
		return nil, fmt.Errorf("read a saved replay: it is at message %d of %d", s.Next, len(session.messages))
	}
	for _, position := range s.Visible {
		if position < 1 || position > len(session.messages) {
			return nil, fmt.Errorf("read a saved replay: there is no message %d", position)
		}
		r.view.Messages = append(r.view.Messages, session.messages[position-1])
	}
	r.next, r.view.Edits, r.view.Summary = s.Next, s.Edits, s.Summary
	r.trigger, r.touched, r.before, r.result = s.Trigger, s.Touched, s.Before, s.Result
	if s.Lines != nil {
		r.lines = s.Lines
	}
	if s.Hidden != nil {
		r.hiddenBy = s.Hidden
	}
	for _, m := range session.messages[:s.Next] {
		r.tokens += m.Tokens
	}
	return r, nil
}
