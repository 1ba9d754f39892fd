// Package plan decides which messages leave a view, and checks that nothing is lost. It is pure: it reads no database
// and no clock.
//
// Each file uses those that are named before it:
//   - settings: settings.go formatprompt.go trigger.go
//   - what leaves a view: plan.go slidingwindow.go planner.go candidate.go clipplan.go omission.go makeplan.go
//     cut.go verify.go pruning.go
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Plan says how a compaction changes a view. Positions count messages in their conversation, seqs in the agent's log.
// Tokens are estimates; After includes a summary of Budget tokens.
type Plan struct {
	Mode   Mode `json:"mode" enum:"sliding_window,all,self_compact_all,self_compact_sliding_window"`
	Window int  `json:"window_tokens"` // 0: unknown
	Goal   int  `json:"goal_tokens"`   // upper bound of After: the settings' goal, or more if that cannot be reached

	// The visible messages from From to To, both included, leave the view, except those in Kept. If only results are
	// clipped, both are zero and the summary stays unchanged.
	From    int   `json:"from"`
	To      int   `json:"to"`
	FromSeq int64 `json:"from_seq"`
	ToSeq   int64 `json:"to_seq"`
	Evicted int   `json:"messages_evicted"`
	Tokens  int   `json:"tokens_evicted"` // as they were shown

	First int         `json:"first_visible"` // position from which on all messages stay
	Kept  []int       `json:"kept"`          // positions before First that stay
	Edits []clip.Edit `json:"edits"`         // all edits of the view after the plan
	Stay  int         `json:"messages_kept"`

	Budget       int  `json:"summary_tokens"` // tokens of the summary's text
	Before       int  `json:"tokens_before"`
	After        int  `json:"tokens_after"`
	FirstChanged int  `json:"first_changed"`  // position of the first message that leaves or is shown differently
	NeedsModel   bool `json:"needs_model"`    // there is something for a model to summarize, if there is a model
	Self         bool `json:"self"`           // the agent's own model summarizes
	Crowded      int  `json:"crowded_tokens"` // tokens by which the fixed parts exceed three quarters of the window

	prose.Making `json:"-"` // how the summary is made
}

func (p Plan) evicts(m recall.Message) bool {
	return p.Evicted > 0 && m.Position < p.First && !slices.Contains(p.Kept, m.Position)
}

// Unchanged returns the plan for a view in which there is nothing to compact.
func Unchanged(v clip.View, mode Mode) Plan {
	p := Plan{Mode: mode, Window: v.Window, Before: clip.Estimate(v), First: 1, Kept: []int{},
		Edits: slices.Clone(v.Edits),
		Stay:  len(v.Messages), Crowded: clip.Crowding(v.Fixed, v.Window)}
	if p.After, p.Goal = p.Before, p.Before; p.Edits == nil {
		p.Edits = []clip.Edit{}
	}
	if len(v.Messages) > 0 {
		p.First = v.Messages[0].Position
	}
	return p
}

// Evict returns the input of the summary: the messages of v that leave. v is the view that was planned for, or a later
// one with more messages. The agent's own model also gets the view as it was shown; the caller adds the system prompt
// and the tools. Any other model gets clipped results whole.
func (p Plan) Evict(v clip.View) clip.Evicted {
	e := clip.Evicted{Budget: p.Budget, Making: p.Making}
	if p.Evicted == 0 {
		return e
	}
	e.Previous = v.Summary
	messages := v.Messages
	if p.Self {
		messages = clip.Shown(messages, v.Edits)
		e.Self = &clip.Self{View: slices.Clone(v.AsShown())}
		e.Self.View = slices.DeleteFunc(e.Self.View, func(m recall.Message) bool { return m.Position > p.To })
	}
	for _, m := range messages {
		if p.evicts(m) {
			e.Messages = append(e.Messages, m)
		}
	}
	return e
}

// View returns the view after the plan. v is the view that was planned for, or a later one with more messages. The
// summary replaces the messages that left; it is ignored if no message leaves.
func (p Plan) View(v clip.View, summary *clip.Summary) clip.View {
	after := clip.View{Window: v.Window, Fixed: v.Fixed, Tools: v.Tools, Summary: v.Summary, Edits: p.Edits,
		Count: v.Count}
	if p.Evicted > 0 {
		after.Summary = summary
	}
	for _, m := range v.Messages {
		if !p.evicts(m) {
			after.Messages = append(after.Messages, m)
		}
	}
	return after
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Nothing is the error that no compaction is necessary or possible. Its text says why. No model was asked.
type Nothing struct {
	Tokens, Goal int  // tokens of the view, and the upper bound; both 0 if the reason is another one
	Messages     int  // messages of the view
	Summarized   bool // the view has a summary
	Stuck        bool // no plan makes the view smaller
}

func (n *Nothing) Error() string {
	switch {
	case n.Goal > 0:
		return fmt.Sprintf("There is nothing to compact: the %d tokens of the view are within the %d that may stay. "+
			"To compact it further, set a lower goal, or use the mode %s", n.Tokens, n.Goal, All)
	case n.Messages == 0 && n.Summarized:
		return "There is nothing to compact: the view has only a summary"
	case n.Messages == 0:
		return "There is nothing to compact: the view has no messages"
	}
	return fmt.Sprintf("There is nothing to compact: of the %s that the view has, at most one may leave it; the others "+
		"are "+
		"the newest of the user, of an open call of a tool, or what the policy's step of the stage compact keeps",
		count(n.Messages, "message"))
}

// Unwrap returns ErrInvalid.
func (*Nothing) Unwrap() error { return db.ErrInvalid }

// TooBig is the error that a view cannot shrink below the window's trigger, because its fixed parts are too large.
type TooBig struct {
	Window, Limit int   // tokens of the window, and of the part of it that what must stay may take
	Least         int   // fewest tokens that the view can have
	Items         []Big // the largest items first
	Crowded       int   // tokens by which the fixed parts exceed three quarters of the window
}

// Big is an item that cannot leave a view.
type Big struct {
	What     string
	Position int // position of a message; 0 for any other item
	Tokens   int
}

// maxBig bounds the items that a TooBig names.
const maxBig = 5

func (e *TooBig) Error() string {
	parts := make([]string, len(e.Items))
	for i, item := range e.Items {
		parts[i] = fmt.Sprintf("%s (%d tokens)", item.What, item.Tokens)
	}
	return fmt.Sprintf("What must stay in the context window takes %d tokens, and at most %d fit: %s. "+
		"Shorten the largest, or set a larger context_window_limit", e.Least, e.Limit, strings.Join(parts, ", "))
}

// Unwrap returns ErrInvalid, because the caller can shorten an item.
func (*TooBig) Unwrap() error { return db.ErrInvalid }
