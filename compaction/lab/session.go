// Package lab replays recorded sessions under policies for context windows. It measures what each policy costs, and how
// much it keeps in view of what the session needs later.
//
// Each file uses those that are named before it:
//   - a session, and what its answers use of what was said before: entity.go source.go counted.go repeat.go session.go
//     evidence.go
//   - what a replay measures: layer.go result.go chain.go
//   - the replay of a session, message by message: replay.go prefix.go steps.go reread.go model.go state.go
//   - policies that are compared, and ratios: compared.go ratio.go
//   - an agent's questions, asked again: agreement.go answer.go
//   - what replays measured, as files: report.go equal.go advice.go meaning.go derived.go page.go, with the template
//     page.templ
package lab

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Session is a transcript as messages of a log, with what its answers use of earlier messages.
type Session struct {
	name     string
	fixed    int // tokens of the system prompt
	leftOut  map[string]int
	messages []recall.Message
	system   string
	counts   *Counts    // how the provider counted; nil if the recording does not say
	meter    *meter     // counts texts; nil: by Loci's estimate
	repeats  [][]repeat // for each message, its calls that read again
	uses     [][]use    // for each message, what it uses of earlier ones; nil if asked is not empty
	sources  [][]Source // for each message
	counted  *transcript.Usage
	asked    []use // evidence for questions after the session: its id and its message, as the transcript names them

	questions []transcript.Question

	loadsSkills bool // a call loads a skill, which compactions show again
}

// pace is the time between messages if a transcript has no times. Steps that depend on the clock need times.
const pace = 15 * time.Second

// NewSession returns a session with the positions and counts that a log gives messages.
func NewSession(t transcript.Transcript) *Session {
	s := &Session{name: t.Name}
	last := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, d := range t.Drafts {
		m := recall.Message{ID: fmt.Sprintf("message-%d", i+1), Seq: int64(i + 1), Position: i + 1, Role: d.Role,
			Content: d.Content, StepID: d.StepID, IsErr: d.IsErr, CreatedAt: last.Add(pace)}
		for _, p := range d.Content {
			s.loadsSkills = s.loadsSkills || strings.HasSuffix(p.Name, "load_skill")
		}
		if d.CreatedAt != nil {
			m.CreatedAt = *d.CreatedAt
		}
		last = m.CreatedAt
		s.messages = append(s.messages, m)
	}
	s.system, s.questions = t.System, t.Evidence
	s.meter.weigh(s.messages)
	s.meter, s.counts = calibrated(s.messages, t.Prompts)
	s.fixed = s.meter.count(t.System) + tokens.PerMessage
	s.sources, s.repeats = sourcesOf(s.messages), repeatsOf(s.messages)
	s.leftOut, s.counted = maps.Clone(t.LeftOut), t.Counted
	if s.leftOut == nil {
		s.leftOut = map[string]int{}
	}
	unknown := 0
	if s.asked, unknown = asked(t); unknown > 0 {
		s.leftOut["ids of evidence that no message has"] = unknown
	}
	if len(s.asked) == 0 {
		s.uses = usesOf(s.messages)
	}
	return s
}

// asked returns the messages that the transcript's questions need. unknown counts ids of evidence that no message has.
func asked(t transcript.Transcript) (all []use, unknown int) {
	byID := map[string]int{}
	for i, d := range t.Drafts {
		if d.OTID != nil {
			byID[*d.OTID] = i
		}
	}
	for _, q := range t.Evidence {
		for _, id := range q.Evidence {
			if i, ok := byID[id]; ok {
				all = append(all, use{entity: id, kind: ID, in: []int{i}})
			} else {
				unknown++
			}
		}
	}
	return all, unknown
}

// Bounds of the windows of replays, in tokens.
const (
	MinWindow = 1_000 // no model's window is smaller
	MaxWindow = 100_000_000
)

// Distinct returns a list's values in their order, each once.
func Distinct[T comparable](list []T) (values []T) {
	seen := map[T]bool{}
	for _, v := range list {
		if !seen[v] {
			seen[v], values = true, append(values, v)
		}
	}
	return values
}

// Name returns the name of the transcript.
func (s *Session) Name() string { return s.name }

// Messages returns the number of messages.
func (s *Session) Messages() int { return len(s.messages) }

// Tokens returns the tokens of a prompt that shows the whole session.
func (s *Session) Tokens() int {
	n := s.fixed
	for _, m := range s.messages {
		n += m.Tokens
	}
	return n
}

// asks reports whether a model was asked for message i, that is, whether it begins an answer.
func (s *Session) asks(i int) bool {
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

// summaryTokens returns the tokens of the message that shows a summary, as texts of the session are counted.
func (s *Session) summaryTokens(made clip.Summary) int {
	if s.meter == nil {
		return clip.SummaryTokens(made)
	}
	return tokens.PerMessage + s.meter.count(clip.SummaryMessage(made, true, nil))
}
