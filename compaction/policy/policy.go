// Package policy holds the ways in which the harnesses of agents keep a context window, as steps that a policy lists.
// A step is one mechanism with its settings: it reads a view and returns edits of it, or says when to compact, or what
// leaves. It reads and writes nothing else, so that the same view, settings, and moment give the same result. A preset
// is a policy with a name.
//
// Each file uses those that are named before it:
//   - what steps work with: duration.go decode.go usage.go place.go mechanism.go policy.go result.go tools.go lines.go
//     pointer.go counting.go cachecost.go formats.go
//   - steps that bound what enters: commandtail.go importanttail.go jsonpreview.go tokenclip.go largestslice.go
//     offload.go readbounds.go snip.go
//   - steps that normalize: idempotentcalls.go dedup.go
//   - steps that prune: agettl.go applyif.go cachettl.go clearthinking.go cleartooluses.go microcompact.go
//     oldarguments.go oneline.go recency.go
//   - steps that say when to compact, and the room that they leave: tokens.go room.go buffer.go bytecount.go
//     fraction.go messagecount.go quietpoint.go reserve.go turncount.go
//   - steps that compact: autocompact.go full.go keeprecent.go checkpoint.go notes.go olderturns.go oldestshare.go
//     provider.go safeguard.go slide.go
//   - steps that restore and truncate: restorefiles.go hardtruncate.go
//   - policies as JSON, which list steps by their names: registry.go order.go settings.go parse.go presets.go when.go
//     layers.go onecutter.go
//   - policies at work: pressure.go idle.go prune.go restore.go
package policy

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// Policy is an ordered list of steps. Steps run in the order of their stages, and within a stage in that of the list.
type Policy struct {
	Preset string // the preset that it began as; empty if it is a pipeline of the caller's
	Steps  []Step
}

// Step is a mechanism with its settings: a pointer to a struct whose exported fields are the settings. It is one of
// Editor, Trigger, Gate, Cutter, or Restorer.
type Step any

// Editor is a step that changes how messages are shown.
type Editor interface {
	// Edits returns the edits that the step asks for, which may be those of the view. Prune makes those of them that save
	// tokens and that are allowed.
	Edits(v clip.View, at Moment) []clip.Edit
}

// Trigger is a step that says when a view is compacted. Of several triggers one is enough.
type Trigger interface {
	Due(v clip.View, at Moment) bool
}

// Gate is a step that lets a compaction that is due wait until the work has come to a quiet point.
type Gate interface {
	// Wait reports whether the compaction waits, given what reports whether it is due for a view. force is the share of
	// the window from which nothing waits.
	Wait(v clip.View, at Moment, due func(clip.View) bool) (wait bool, force float64)
}

// Cutter is a step that says what of a view leaves, and how it is summarized. Its plan hides at least one message or
// clips something, else it returns a *plan.Nothing, or a *plan.TooBig for what does not fit.
type Cutter interface {
	Plan(v clip.View, at Moment) (plan.Plan, error)
}

// Restorer is a step that says what of the messages that left is shown again after a summary.
type Restorer interface {
	Restore(left []recall.Message, after clip.View, at Moment) []Restored
}

// Restored is a result of a tool that is shown again.
type Restored struct {
	Position int    // of its message in the conversation
	Seq      int64  // of its message in the agent's log
	Part     int    // index in the message's content
	Source   string // the file or the call that it is of
	Tokens   int    // of what is shown
	Named    bool   // too long to be shown: only its source and its seq are named
}

// Moment is what a step may know in addition to the view.
type Moment struct {
	Now      time.Time     // of the prompt
	Touched  time.Time     // when the conversation's last prompt was handed out; zero if none was
	Sent     int           // position of the last message of that prompt; 0 if none is known
	Forced   bool          // someone asked for a compaction
	Settings plan.Settings // of the agent: bounds that hold whatever the policy says; zero: the defaults
	Tokens   int           // of the prompt, as the caller counts them; 0: those of the view
	Busy     bool          // a plan is under way, or a sub-agent still works
	Notes    string        // the working memory, as the model reads it
	Noted    int           // position of the newest message when a checkpoint wrote the notes; 0: none did

	// Write writes lines that show what results held, in the order of the requests; an empty line keeps a result as it
	// is shown. Nil: there is no model, and the lines say so.
	Write func([]LineRequest) []string

	usage *usage // of the prompt while it is pruned
	steps []Step // of the policy that plans
}

// tokens returns the tokens of the prompt.
func (at Moment) tokens(v clip.View) int {
	if at.usage != nil {
		return at.usage.of(at.Tokens, v)
	}
	if at.Tokens > 0 {
		return at.Tokens
	}
	return clip.Estimate(v)
}

// settings returns the agent's settings.
func (at Moment) settings() plan.Settings {
	if at.Settings.Mode == "" {
		return plan.Defaults()
	}
	return at.Settings
}

// Idle returns how long no prompt was handed out; 0 before the first.
func (at Moment) Idle() time.Duration {
	if at.Touched.IsZero() {
		return 0
	}
	return at.Now.Sub(at.Touched)
}
