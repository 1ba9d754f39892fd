package compaction

import (
	"fmt"

	"github.com/loci-memory/loci/recall"
)

// Violation says that a compaction would lose a message, show one twice, or part a call from its result. It is never committed.
type Violation struct {
	Position int // of the message; 0 if it is not of one
	Fault    string
}

func (v *Violation) Error() string {
	if v.Position == 0 {
		return "the compaction is not conserving: " + v.Fault
	}
	return fmt.Sprintf("the compaction is not conserving: message %d %s", v.Position, v.Fault)
}

// Conserve checks what is about to be committed: that each message of the view before is either in the one after, as it was or clipped
// so that its id reads the rest, or was given to be summarised, never neither, never both; that the view after has no others, and no call
// without the result that it had; that the user's newest message stays as it is; that the summary before was carried along. Its error is a
// *Violation.
func Conserve(before View, given Evicted, after View) error {
	if err := conserveSummary(before, given, after); err != nil {
		return err
	}
	visible, summarised := 0, 0 // messages found in the view after, and in what was given: both have the order of the view
	evicted := make(map[int]bool, len(given.Messages))
	for _, m := range before.Messages {
		stays := visible < len(after.Messages) && same(after.Messages[visible], m)
		leaves := summarised < len(given.Messages) && same(given.Messages[summarised], m)
		switch {
		case stays && leaves:
			return &Violation{m.Position, "would be both visible and summarised"}
		case stays:
			visible++
		case leaves:
			summarised++
			evicted[m.Position] = true
		default:
			return &Violation{m.Position, "would be neither visible nor summarised"}
		}
	}
	if visible < len(after.Messages) {
		return &Violation{after.Messages[visible].Position, "would be visible, and is not of the view before"}
	}
	if summarised < len(given.Messages) {
		return &Violation{given.Messages[summarised].Position, "was given to the summariser, and is not of the view before"}
	}
	if err := conservePairs(before.Messages, evicted); err != nil {
		return err
	}
	return conserveClips(before, after, evicted)
}

// same tells whether two messages are one, with all that it has.
func same(a, b recall.Message) bool {
	return a.Position == b.Position && a.ID == b.ID && a.Seq == b.Seq && a.Role == b.Role && a.Tokens == b.Tokens && len(a.Content) == len(b.Content)
}

// conserveSummary checks that the summary stands for all that it did before and for what leaves now, and only changes with that.
func conserveSummary(before View, given Evicted, after View) error {
	if len(given.Messages) == 0 {
		if before.Summary != after.Summary {
			return &Violation{0, "the summary would change, and nothing was summarised"}
		}
		return nil
	}
	from, to := given.Messages[0].Position, given.Messages[len(given.Messages)-1].Position
	if was := before.Summary; was != nil {
		if given.Previous == nil || given.Previous.Text != was.Text {
			return &Violation{0, "the summary before was not carried along"}
		}
		from, to = min(from, was.From), max(to, was.To)
	}
	if s := after.Summary; s == nil || s.From > from || s.To < to {
		return &Violation{0, fmt.Sprintf("the summary does not stand for all from position %d to %d", from, to)}
	}
	return nil
}

// conservePairs checks that a call and its result leave together or not at all, and that no call leaves that may yet get its result.
func conservePairs(messages []recall.Message, evicted map[int]bool) error {
	open := newWaiting(messages)
	for i, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.call(p.CallID, i)
			case recall.ToolReturn:
				if at, ok := open.result(p.CallID); ok && evicted[messages[at].Position] != evicted[m.Position] {
					return &Violation{m.Position, fmt.Sprintf("has the result of a call of message %d, and only one of them would leave", messages[at].Position)}
				}
			}
		}
	}
	g := groupsOf(messages)
	for _, m := range messages[g.pending:] {
		if evicted[m.Position] && m.Role == recall.Assistant {
			return &Violation{m.Position, "has a call that is open, and would leave"}
		}
	}
	if g.user >= 0 && evicted[messages[g.user].Position] {
		return &Violation{messages[g.user].Position, "is the newest of the user, and would leave"}
	}
	return nil
}

// conserveClips checks that clips are of results that stay, that each is clipped once, and that what was clipped and stays is so still.
func conserveClips(before, after View, evicted map[int]bool) error {
	messages := make(map[int]recall.Message, len(after.Messages))
	for _, m := range after.Messages {
		messages[m.Position] = m
	}
	clipped := map[place]Clip{}
	for _, c := range after.Clips {
		m, ok := messages[c.Position]
		if !ok || !fits(m, c) || m.ID == "" {
			return &Violation{c.Position, fmt.Sprintf("has no result as part %d that could be clipped and read by an id", c.Part)}
		}
		if _, twice := clipped[place{c.Position, c.Part}]; twice {
			return &Violation{c.Position, fmt.Sprintf("would have part %d clipped twice", c.Part)}
		}
		clipped[place{c.Position, c.Part}] = c
	}
	for _, c := range before.Clips {
		if now, ok := clipped[place{c.Position, c.Part}]; !evicted[c.Position] && messages[c.Position].ID != "" && (!ok || now.Chars > c.Chars) {
			return &Violation{c.Position, fmt.Sprintf("would show more of part %d than before", c.Part)}
		}
	}
	return nil
}
