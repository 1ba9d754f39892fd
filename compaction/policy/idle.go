package policy

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Idle is due when no prompt was handed out for a while.
type Idle struct {
	After       Duration `json:"after" doc:"How long no prompt was handed out."`
	AboveTokens int      `json:"above_tokens" min:"0" max:"100000000" doc:"A prompt up to this size is left alone."`
	WindowShare float64  `json:"window_share" min:"0" max:"1" doc:"So is one up to this share of the window."`
}

func (*Idle) describe() Mechanism {
	return Mechanism{Name: "idle", Stage: Pressure, Source: "the deck, Claude Code",
		Words: "Compacts a large view while nobody waits, so that the next turn begins small.",
		New:   func() Step { return &Idle{After: Duration(75 * time.Minute), AboveTokens: 100_000} }}
}

// Pause returns the shortest pause after which a step of the policy compacts. ok is false if pauses make no step due.
func (p Policy) Pause() (pause time.Duration, ok bool) { return pauseOf(p.Steps) }

func pauseOf(steps []Step) (pause time.Duration, ok bool) {
	for _, s := range steps {
		after, is := time.Duration(0), false
		switch s := s.(type) {
		case *Idle:
			after, is = time.Duration(s.After), true
		case *When:
			after, is = pauseOf(s.All)
		}
		if is && (!ok || after < pause) {
			pause, ok = after, true
		}
	}
	return pause, ok
}

// DueWithoutPause reports whether a view would be compacted even without any pause.
func (p Policy) DueWithoutPause(v clip.View, at Moment, was plan.TriggerState) bool {
	at.Touched = time.Time{}
	due, _ := p.Check(v, at, was)
	return due.Compact || due.Deferred
}

// Due reports whether the pause was long enough and the prompt is large enough.
func (s *Idle) Due(v clip.View, at Moment) bool {
	return at.Idle() >= time.Duration(s.After) && !at.Touched.IsZero() && at.tokens(v) > s.AboveTokens &&
		float64(at.tokens(v)) > s.WindowShare*float64(v.Window)
}
