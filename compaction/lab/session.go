// Package lab replays recorded sessions under policies of context windows, and measures what each costs and what it
// keeps in view of what the session needs later.
package lab

import (
	"fmt"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// session is a transcript as messages of a log.
type session struct {
	name     string
	fixed    int // tokens of the system prompt
	messages []recall.Message
	uses     [][]use // by message: what it uses of the messages before
	asked    []use   // after the session, by questions whose evidence the transcript names: an id, and its message
}

// newSession returns a session whose messages have the positions and the counts that a log gives them.
func newSession(t transcript.Transcript) session {
	s := session{name: t.Name, fixed: tokens.Estimate(t.System) + tokens.PerMessage}
	for i, d := range t.Drafts {
		m := recall.Message{ID: fmt.Sprintf("message-%d", i+1), Seq: int64(i + 1), Position: i + 1, Role: d.Role,
			Content: d.Content, StepID: d.StepID, Tokens: tokens.PerMessage}
		for _, p := range d.Content {
			m.Tokens += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input) +
				p.SealedTokens() + len(p.Images)*tokens.PerImage
		}
		if d.CreatedAt != nil {
			m.CreatedAt = *d.CreatedAt
		}
		s.messages = append(s.messages, m)
	}
	s.uses = usesOf(s.messages)
	byID := map[string]int{}
	for i, d := range t.Drafts {
		if d.OTID != nil {
			byID[*d.OTID] = i
		}
	}
	for _, q := range t.Evidence {
		for _, id := range q.Evidence {
			if i, ok := byID[id]; ok {
				s.asked = append(s.asked, use{entity: id, in: []int{i}})
			}
		}
	}
	return s
}

// asks reports whether a model was asked for the message at an index: it begins an answer.
func (s session) asks(i int) bool {
	m := s.messages[i]
	if m.Role != recall.Assistant {
		return false
	}
	if i == 0 || s.messages[i-1].Role != recall.Assistant {
		return true
	}
	before := s.messages[i-1].StepID
	return before == nil || m.StepID == nil || *before != *m.StepID
}
