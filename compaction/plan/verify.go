package plan

import (
	"fmt"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Violation is the error that a compaction would lose a message, show one twice, or separate a call from its result.
// Such a compaction is never committed.
type Violation struct {
	Position int // position of the message; 0 if the fault is not about one
	Fault    string
}

func (v *Violation) Error() string {
	if v.Position == 0 {
		return "the compaction is wrong: " + v.Fault
	}
	return fmt.Sprintf("the compaction is wrong: message %d %s", v.Position, v.Fault)
}

// CheckNothingLost checks a compaction before it is committed. It returns a *Violation unless all of this holds:
//   - Each message of the view before is in the view after, unchanged or clipped, or was given to the summarizer.
//   - The view after has no other messages, and no call has lost its result. Each result has its call, unless it came
//     late.
//   - The user's newest message stays. So do the newest calls and their results, until the model answers them or the
//     user speaks again.
//   - The previous summary was given to the summarizer.
func CheckNothingLost(before clip.View, given clip.Evicted, after clip.View) error {
	if err := checkSummary(before, given, after); err != nil {
		return err
	}
	visible, summarized := 0, 0 // messages found so far in after and in given; both keep the view's order
	evicted := make(map[int]bool, len(given.Messages))
	removed := map[int]int{} // number of parts that the view before does not show, by their message's position
	for _, e := range before.Edits {
		if e.Kind == clip.Removed && e.Text == "" {
			removed[e.Position]++
		}
	}
	for _, m := range before.Messages {
		stays := visible < len(after.Messages) && same(after.Messages[visible], m, 0)
		leaves := summarized < len(given.Messages) && same(given.Messages[summarized], m, removed[m.Position])
		switch {
		case stays && leaves:
			return &Violation{m.Position, "would be both visible and summarized"}
		case stays:
			visible++
		case leaves:
			summarized++
			evicted[m.Position] = true
		default:
			return &Violation{m.Position, "would be neither visible nor summarized"}
		}
	}
	if visible < len(after.Messages) {
		return &Violation{after.Messages[visible].Position, "would be visible, and is not of the view before"}
	}
	if summarized < len(given.Messages) {
		return &Violation{given.Messages[summarized].Position, "was given to the summarizer, and is not of the view before"}
	}
	if err := checkPairs(before.Messages, evicted); err != nil {
		return err
	}
	return checkEdits(before, after)
}

// same reports whether a is message b, with all parts or without the notShown parts that the view does not show. The
// agent's own model gets its messages as it saw them.
func same(a, b recall.Message, notShown int) bool {
	parts := len(b.Content)
	return a.Position == b.Position && a.ID == b.ID && a.Seq == b.Seq && a.Role == b.Role && a.Tokens == b.Tokens &&
		(len(a.Content) == parts || len(a.Content) == parts-notShown)
}

// checkSummary checks that the summary covers everything that it covered before and everything that leaves now. The
// summary may change only if a message leaves.
func checkSummary(before clip.View, given clip.Evicted, after clip.View) error {
	if len(given.Messages) == 0 {
		if before.Summary != after.Summary {
			return &Violation{0, "the summary would change, and nothing was summarized"}
		}
		return nil
	}
	from, to := given.Messages[0].Position, given.Messages[len(given.Messages)-1].Position
	if old := before.Summary; old != nil {
		if given.Previous == nil || given.Previous.Text != old.Text {
			return &Violation{0, "the summary before was not carried along"}
		}
		from, to = min(from, old.From), max(to, old.To)
	}
	if s := after.Summary; s == nil || s.From > from || s.To < to {
		return &Violation{0, fmt.Sprintf("the summary does not cover all from position %d to %d", from, to)}
	}
	return nil
}

// checkPairs checks that a call and its result leave together or not at all, except that a late result may stay alone;
// and that neither the user's newest message nor unanswered results leave.
func checkPairs(messages []recall.Message, evicted map[int]bool) error {
	open, points := recall.OpenCalls[int]{}, clip.CutPointsOf(messages)
	for i, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, i)
			case recall.ToolReturn:
				call, ok := open.Answer(p.CallID)
				if ok && evicted[messages[call].Position] != evicted[m.Position] &&
					(evicted[m.Position] || !slices.Contains(points.Late, clip.LatePair{Call: call, Result: i})) {
					return &Violation{m.Position, fmt.Sprintf("has the result of a call of message %d, "+
						"and only one of them would leave", messages[call].Position)}
				}
			}
		}
	}
	if points.Abandoned() {
		points.Release()
	}
	for i, m := range messages {
		switch {
		case !points.Stays(i) || !evicted[m.Position]:
		case i == points.User:
			return &Violation{m.Position, "is the newest of the user, and would leave"}
		default:
			return &Violation{m.Position, "is of a call whose result the model has not answered, and would leave"}
		}
	}
	return nil
}

// checkEdits checks that each edit is of a part that stays and may be edited, that no part has two edits, that no edit
// is of the user's newest message, that an edited part shows no more than before, and that a call and its result are
// both shown or neither.
func checkEdits(before, after clip.View) error {
	messages := make(map[int]recall.Message, len(after.Messages))
	newest := 0 // position of the user's newest message
	for _, m := range after.Messages {
		messages[m.Position] = m
		if m.Role == recall.User {
			newest = m.Position
		}
	}
	edits := map[clip.Place]clip.Edit{}
	for _, e := range after.Edits {
		m, ok := messages[e.Position]
		switch {
		case e.Position == 0 && after.Summary == before.Summary && after.Summary != nil && e.IsClip():
		case !ok || !clip.IsEditOf(e, m) || m.ID == "":
			return &Violation{e.Position,
				fmt.Sprintf("has no part %d that could be shown so and read by an id", e.Part)}
		case e.Position == newest:
			return &Violation{e.Position, "is the newest of the user, and would not be shown whole"}
		}
		if _, twice := edits[clip.Place{Message: e.Position, Part: e.Part}]; twice {
			return &Violation{e.Position, fmt.Sprintf("would have two edits of part %d", e.Part)}
		}
		edits[clip.Place{Message: e.Position, Part: e.Part}] = e
	}
	for _, e := range before.Edits {
		if _, stays := messages[e.Position]; !stays && (e.Position > 0 || after.Summary != before.Summary) {
			continue
		}
		if edit, ok := edits[clip.Place{Message: e.Position, Part: e.Part}]; !ok || !edit.ShowsNoMoreThan(e) {
			return &Violation{e.Position, fmt.Sprintf("would show more of part %d than before", e.Part)}
		}
	}
	return checkRemoved(after.Messages, edits)
}

// checkRemoved checks that a call and its result are both shown, or neither of them.
func checkRemoved(messages []recall.Message, edits map[clip.Place]clip.Edit) error {
	open := recall.OpenCalls[bool]{}
	for _, m := range messages {
		for part, p := range m.Content {
			removed := edits[clip.Place{Message: m.Position, Part: part}].Kind == clip.Removed
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, removed)
			case recall.ToolReturn:
				if callRemoved, ok := open.Answer(p.CallID); ok && callRemoved != removed {
					return &Violation{m.Position, "has a result that would be shown without its call, or not be shown with it"}
				}
			}
		}
	}
	for _, calls := range open {
		if slices.Contains(calls, true) {
			return &Violation{0, "a call without a result would not be shown"}
		}
	}
	return nil
}
