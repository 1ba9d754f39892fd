// Package policy holds the ways in which agent harnesses manage a context window, as steps of a policy. A step is a
// mechanism with settings. It reads a view and returns edits, or says when to compact, or what leaves. Steps have no
// other input or effect: the same view, settings and moment give the same result. A preset is a policy with a name.
//
// Each file uses those that are named before it:
//   - what steps work with: duration.go decode.go usage.go place.go mechanism.go policy.go result.go tools.go lines.go
//     pointer.go counting.go cachecost.go formats.go contextmanagement.go
//   - steps that bound what enters: bootstrap.go commandtail.go importanttail.go jsonpreview.go tokenclip.go
//     largestslice.go offload.go readbounds.go snip.go
//   - steps that normalize: idempotentcalls.go dedup.go
//   - steps that prune: agettl.go applyif.go cachettl.go clearthinking.go cleartooluses.go microcompact.go
//     oldarguments.go oneline.go recency.go
//   - steps that say when to compact, and the room that they leave: tokens.go room.go buffer.go bytecount.go
//     fraction.go messagecount.go quietpoint.go reserve.go turncount.go
//   - steps that compact: autocompact.go full.go keeprecent.go checkpoint.go notes.go olderturns.go oldestshare.go
//     provider.go safeguard.go slide.go
//   - steps that restore and truncate: restorefiles.go restoreskills.go hardtruncate.go
//   - policies as JSON, which list steps by their names: registry.go order.go settings.go parse.go presets.go when.go
//     layers.go onecutter.go
//   - policies at work: pressure.go idle.go prune.go restore.go
package policy

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Policy is a list of steps. They run in the order of their stages; steps of the same stage run in the order of the
// list.
type Policy struct {
	Preset string // the preset that it began as; empty for a caller's own list of steps
	Steps  []Step
}

// Step is a mechanism with its settings: a pointer to a struct with the settings as exported fields. It is an Editor,
// Trigger, Gate, Cutter or Restorer.
type Step any

// Editor is a step that changes how messages are shown.
type Editor interface {
	// Edits returns the edits that the step wants; the view may already have some of them. Prune makes only edits that
	// save tokens and are allowed.
	Edits(v clip.View, at Moment) []clip.Edit
}

// Trigger is a step that says when a view is compacted. One due trigger is enough.
type Trigger interface {
	Due(v clip.View, at Moment) bool
}

// Gate is a step that delays a due compaction until the work reaches a quiet point.
type Gate interface {
	// Wait reports whether the compaction waits. due reports whether the compaction is due for a given view. force is the
	// share of the window from which on nothing waits.
	Wait(v clip.View, at Moment, due func(clip.View) bool) (wait bool, force float64)
}

// Cutter is a step that decides which messages leave a view, and how they are summarized. Its plan hides at least one
// message or clips something. If there is nothing to do, Plan returns a *plan.Nothing; if the messages that must stay
// do not fit, a *plan.TooBig.
type Cutter interface {
	Plan(v clip.View, at Moment) (plan.Plan, error)
}

// Restorer is a step that shows results from hidden messages again, behind the summary.
type Restorer interface {
	// Restore returns the results, the newest first. left is a view of the messages that left, as they were shown.
	Restore(left, after clip.View, at Moment) []Restored
}

// Restored is a tool's result that is shown again.
type Restored struct {
	Position int    // position of its message in the conversation
	Seq      int64  // seq of its message in the agent's log
	Part     int    // index in the message's content
	Source   string // the file or call that it came from
	Tokens   int    // tokens of the shown text
	Named    bool   // it cannot be shown: only its source and its seq are named
	Skill    bool   // it is a loaded skill

	Cut *clip.Edit // how the result is cut; nil shows it as before
}

// Moment is the input of a step besides the view.
type Moment struct {
	Now       time.Time         // time of the prompt
	Touched   time.Time         // when the conversation's last prompt was handed out; zero if none was
	Sent      int               // position of the last message in that prompt; 0 if unknown
	Forced    bool              // someone asked for a compaction
	Settings  plan.Settings     // the agent's settings: bounds that no policy exceeds; zero: the defaults
	Tokens    int               // tokens of the prompt, counted by the caller; 0: counted from the view
	Anthropic bool              // the prompt is in the form of Anthropic's API
	Busy      bool              // a client's plan is under way, or a sub-agent still works
	Notes     string            // the working memory, as the model reads it
	Skills    map[string]string // what load_skill returns now, by name, of each skill in view; nil: not known
	Noted     int               // position of the newest message when a checkpoint wrote the notes; 0: none wrote them

	// Whole returns the text of a long result by the id of its Clip; empty if it is not stored any more. Nil means that
	// only the beginnings that the log has are known.
	Whole func(clip string) string

	// Write returns a line about the result in each request, in the order of the requests. Nil means that there is no
	// model, and rules write the lines.
	Write func([]LineRequest) []Line

	usage *usage // the prompt's usage while it is pruned
	steps []Step // steps of the policy that plans

	onlyFree bool // skills get only what is free
}

// tokens returns the prompt's tokens.
func (at Moment) tokens(v clip.View) int {
	if at.usage != nil {
		return at.usage.of(at.Tokens, v)
	}
	if at.Tokens > 0 {
		return at.Tokens
	}
	return clip.Estimate(v)
}

// settings returns the agent's settings, or the defaults.
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
