package plan

import (
	"fmt"
	"maps"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// answeredCall is a call of the newest step, and its result.
type answeredCall struct{ call, result clip.Place }

// omit shows nothing of calls of the newest step and of their results, the oldest first, until the view takes at most
// target tokens. The newest of these calls stays. A line in place of the first says how many there are. If that is not
// enough, calls that wait for a result are shown without arguments, and the step's thoughts are not shown.
func (c *candidate) omit(target int) {
	c.fresh = maps.Clone(c.fresh)
	calls, waiting := c.newestCalls()
	if len(calls) > 1 && c.tokens() > target {
		first, n := calls[0].call, 0
		for c.remove(first, c.omitted(calls)); n < len(calls)-1 && (n == 0 || c.tokens() > target); n++ {
			if c.remove(calls[n].result, ""); n > 0 {
				c.remove(calls[n].call, "")
			}
		}
		c.remove(first, c.omitted(calls[:n]))
	}
	for _, call := range waiting {
		if c.tokens() > target {
			c.show(call, clip.Edit{Kind: clip.Stub, Text: clip.NoArguments})
		}
	}
	for i := c.points.Unseen; i < c.points.Seen && c.tokens() > target; i++ {
		for part, p := range c.v.Messages[i].Content {
			if clip.IsReasoning(p) {
				c.remove(clip.Place{Message: i, Part: part}, "")
			}
		}
	}
}

// newestCalls returns the calls of the newest step in order: those that have a result, and those that wait for one.
func (c *candidate) newestCalls() (all []answeredCall, waiting []clip.Place) {
	open := recall.OpenCalls[clip.Place]{}
	results := map[clip.Place]clip.Place{}
	var calls []clip.Place
	for i := c.points.Unseen; i < len(c.v.Messages); i++ {
		for part, p := range c.v.Messages[i].Content {
			place := clip.Place{Message: i, Part: part}
			switch {
			case p.Type == recall.ToolCall && i < c.points.Seen:
				open.Add(p.CallID, place)
				calls = append(calls, place)
			case p.Type == recall.ToolReturn:
				if call, ok := open.Answer(p.CallID); ok {
					results[call] = place
				}
			}
		}
	}
	for _, call := range calls {
		if result, ok := results[call]; ok {
			all = append(all, answeredCall{call, result})
		} else {
			waiting = append(waiting, call)
		}
	}
	return all, waiting
}

// omitted says that calls and their results are not shown.
func (c *candidate) omitted(calls []answeredCall) string {
	from, to := c.v.Messages[calls[0].result.Message].Seq, c.v.Messages[calls[len(calls)-1].result.Message].Seq
	return fmt.Sprintf("the window has no room for %s made here before the next, and for the results at seq %d-%d",
		count(len(calls), "call"), from, to)
}

// remove shows nothing of a part, or a line in its place.
func (c *candidate) remove(place clip.Place, line string) {
	c.show(place, clip.Edit{Kind: clip.Removed, Text: line})
}

// show gives a part an edit, if it may have it.
func (c *candidate) show(place clip.Place, now clip.Edit) {
	m := c.v.Messages[place.Message]
	if now.Position, now.Part = m.Position, place.Part; !clip.IsEditOf(now, m) {
		return
	}
	saved := c.v.EditSaves(m, now)
	if was, ok := c.editAt(c.fresh, place); ok {
		saved -= c.v.EditSaves(m, was)
	}
	c.fresh[place] = now
	if place.Message < c.known {
		c.old = max(c.old-saved, 0)
	} else {
		c.new = max(c.new-saved, 0)
	}
}
