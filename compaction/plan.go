package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Policy decides what leaves a view. It reads and writes nothing: of the same view and settings it makes the same plan. Its errors are a
// *Nothing and a *TooBig.
type Policy interface {
	Plan(View, Settings) (Plan, error)
}

// policies are the modes.
var policies = map[Mode]Policy{
	SlidingWindow:            policy{mode: SlidingWindow, cuts: sliding, goal: true},
	All:                      policy{mode: All, cuts: everything},
	SelfCompactSlidingWindow: policy{mode: SelfCompactSlidingWindow, cuts: sliding, goal: true, self: true},
	SelfCompactAll:           policy{mode: SelfCompactAll, cuts: everything, self: true},
}

// Policy is the mode's. ErrInvalid, if there is no such mode.
func (m Mode) Policy() (Policy, error) {
	p, ok := policies[m]
	if !ok {
		return nil, Settings{Mode: m}.Validate()
	}
	return p, nil
}

// Plan says what a compaction would do to a view. Positions are those of messages in their conversation, seqs those in the agent's log.
// Tokens are estimates: After counts a summary of Budget tokens.
type Plan struct {
	Mode   Mode `json:"mode"`
	Window int  `json:"window_tokens"` // 0: not known
	Goal   int  `json:"goal_tokens"`   // that After may reach: the goal of the settings, or what can be reached if that is more

	// What leaves the view: of the messages from From to To, both included, all that are visible but Kept. All zero where results are
	// clipped and no message leaves; then the summary stays as it is.
	From    int   `json:"from"`
	To      int   `json:"to"`
	FromSeq int64 `json:"from_seq"`
	ToSeq   int64 `json:"to_seq"`
	Evicted int   `json:"messages_evicted"`
	Tokens  int   `json:"tokens_evicted"` // as they were shown

	First int    `json:"first_visible"` // position from which on all messages stay
	Kept  []int  `json:"kept"`          // positions before it that stay
	Clips []Clip `json:"clips"`         // all of the view after
	Stay  int    `json:"messages_kept"`

	Budget       int  `json:"summary_tokens"` // that the summary's text may take
	Before       int  `json:"tokens_before"`
	After        int  `json:"tokens_after"`
	FirstChanged int  `json:"first_changed"`  // position of the first message that is shown otherwise than before, or no more
	NeedsModel   bool `json:"needs_model"`    // there is something to summarise
	Self         bool `json:"self"`           // the agent's own model is to do it
	Crowded      int  `json:"crowded_tokens"` // by which the fixed parts exceed three quarters of the window
}

// evicts tells whether a message of the view leaves it.
func (p Plan) evicts(m recall.Message) bool {
	return p.Evicted > 0 && m.Position < p.First && !slices.Contains(p.Kept, m.Position)
}

// Evict is what is to be summarised of a view: the one that was planned for, or what it has grown to. The agent's own model is given it as
// it was shown, any other the whole of clipped results. With Self, what stays and was shown before and between is there, for the caller to
// add the system prompt and the tools: in the order of their positions, these messages and the evicted are the beginning of what the
// agent's model was sent last.
func (p Plan) Evict(v View) Evicted {
	e := Evicted{Budget: p.Budget}
	if p.Evicted == 0 {
		return e
	}
	e.Previous = v.Summary
	var stay []recall.Message
	messages := v.Messages
	if p.Self {
		messages = Shown(messages, v.Clips)
	}
	for _, m := range messages {
		switch {
		case p.evicts(m):
			e.Messages = append(e.Messages, m)
		case m.Position < p.To:
			stay = append(stay, m)
		}
	}
	if p.Self {
		e.Self = &Self{Before: stay}
	}
	return e
}

// View is what the model sees after the plan: of the view that was planned for, or of what it has grown to. s stands for what left; it is
// not looked at where nothing leaves.
func (p Plan) View(v View, s *Summary) View {
	after := View{Window: v.Window, Fixed: v.Fixed, Tools: v.Tools, Summary: v.Summary, Clips: p.Clips}
	if p.Evicted > 0 {
		after.Summary = s
	}
	for _, m := range v.Messages {
		if !p.evicts(m) {
			after.Messages = append(after.Messages, m)
		}
	}
	return after
}

// String is the plan for a person to read.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", p.Mode)
	if p.Evicted > 0 {
		fmt.Fprintf(&b, "%s of %d from position %d to %d, %s, leave the view: %d tokens. A summary of at most %d takes their place%s.\n",
			count(p.Evicted, "message"), p.Evicted+p.Stay, p.From, p.To, Range(p.FromSeq, p.ToSeq), p.Tokens, p.Budget, p.author())
	} else {
		fmt.Fprintf(&b, "no message leaves the view.\n")
	}
	fmt.Fprintf(&b, "What stays: %s, all from position %d on", count(p.Stay, "message"), p.First)
	for _, position := range p.Kept {
		fmt.Fprintf(&b, ", and position %d", position)
	}
	b.WriteString(".\n")
	for _, c := range p.Clips {
		fmt.Fprintf(&b, "Of position %d, part %d, %d characters are shown.\n", c.Position, c.Part, c.Chars)
	}
	fmt.Fprintf(&b, "The view changes from position %d on. Tokens: %d before, %d after", p.FirstChanged, p.Before, p.After)
	if p.Window > 0 {
		fmt.Fprintf(&b, ", of %d; at most %d were to stay", p.Window, p.Goal)
	}
	b.WriteString(".\n")
	if p.Crowded > 0 {
		fmt.Fprintf(&b, "The fixed parts of the prompt leave less than a quarter of the window: %d tokens too many.\n", p.Crowded)
	}
	return b.String()
}

func (p Plan) author() string {
	if p.Self {
		return ", by the agent's own model"
	}
	return ""
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Nothing says that there is nothing to compact, and why. No model is asked.
type Nothing struct {
	Tokens, Goal int // of the view, and how many may stay; both 0 if that is not why
	Messages     int
	Summarised   bool // there is a summary already
}

func (n *Nothing) Error() string {
	switch {
	case n.Goal > 0:
		return fmt.Sprintf("There is nothing to compact: the %d tokens of the view are within the %d that may stay. "+
			"To compact it further, set a lower goal, or use the mode %s", n.Tokens, n.Goal, All)
	case n.Messages == 0 && n.Summarised:
		return "There is nothing to compact: the view has only a summary"
	case n.Messages == 0:
		return "There is nothing to compact: the view has no messages"
	}
	return fmt.Sprintf("There is nothing to compact: of the %s that the view has, at most one may leave it; "+
		"the newest of the user and an open call of a tool stay", count(n.Messages, "message"))
}

// Unwrap makes it ErrInvalid: the caller asked for what cannot be.
func (*Nothing) Unwrap() error { return db.ErrInvalid }

// TooBig says that what cannot leave a view does not fit its window below the trigger.
type TooBig struct {
	Window, Limit int   // tokens: of the window, and up to its trigger
	Least         int   // tokens to which the view can be brought
	Items         []Big // what they are, the largest first
	Crowded       int   // tokens by which the fixed parts exceed three quarters of the window
}

// Big is something that cannot leave a view. Position is that of a message, 0 for anything else.
type Big struct {
	What     string
	Position int
	Tokens   int
}

// maxBig is how many items a TooBig names.
const maxBig = 5

func (e *TooBig) Error() string {
	parts := make([]string, len(e.Items))
	for i, item := range e.Items {
		parts[i] = fmt.Sprintf("%s (%d tokens)", item.What, item.Tokens)
	}
	return fmt.Sprintf("What must stay in the context window takes %d tokens, and may take %d of its %d: %s. "+
		"Shorten the largest, or set a larger context_window_limit", e.Least, e.Limit, e.Window, strings.Join(parts, ", "))
}

// Unwrap makes it ErrInvalid: the caller can shorten what is too big.
func (*TooBig) Unwrap() error { return db.ErrInvalid }
