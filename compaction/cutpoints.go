package compaction

import (
	"slices"

	"github.com/loci-memory/loci/recall"
)

// CutPoints says where a view may be cut. A cut separates neither a tool call from its result, nor messages between
// the two, nor messages of one step of the assistant. A late result, which comes after the assistant or the user went
// on, is a message of its own: it may stay when its call leaves, but leaves no call that stays.
type CutPoints struct {
	inside   []bool       // inside[i]: a cut before message i separates what belongs together; one more than messages
	user     int          // index of the user's newest message; -1 if there is none
	openCall int          // index where the newest step begins if one of its calls has no result; else their number
	unseen   int          // index where the newest step begins if no answer follows its calls' results; else as above
	seen     int          // index after the results of that step; else the number of messages
	kept     map[int]bool // indexes of other messages that stay wherever the view is cut
	unread   map[int]bool // indexes of late results that the model has not answered
	late     []latePair   // in the order of the results
}

// latePair holds the indexes of a call and of its late result.
type latePair struct{ call, result int }

// CutPointsOf returns where a view with some messages may be cut.
func CutPointsOf(messages []recall.Message) CutPoints {
	n := len(messages)
	c := CutPoints{inside: make([]bool, n+1), user: -1, openCall: n, unseen: n, seen: n}
	until := make([]int, n) // the last message that belongs to each
	newest := -1            // of the assistant
	wentOn := -1            // the last message that makes the results of earlier calls late
	c.unread = map[int]bool{}
	open := recall.OpenCalls[int]{}
	for i, m := range messages {
		until[i] = i
		switch m.Role {
		case recall.User:
			c.user, wentOn = i, i
		case recall.Assistant:
			newest = i
			clear(c.unread)
			if i > 0 && sameStep(messages[i-1], m) {
				until[i-1] = i
			} else {
				wentOn = i
			}
		}
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, i)
			case recall.ToolReturn:
				at, ok := open.Answer(p.CallID)
				switch {
				case ok && at < wentOn:
					c.late, c.unread[i] = append(c.late, latePair{at, i}), true
				case ok:
					until[at] = i
				case !p.Orphan: // of a call that left
					c.unread[i] = true
				}
			}
		}
	}
	end := -1
	for i := range messages {
		c.inside[i] = i <= end
		end = max(end, until[i])
	}
	if newest >= 0 {
		first := newest
		for first > 0 && sameStep(messages[first-1], messages[first]) {
			first--
		}
		if slices.ContainsFunc(messages[first:newest+1], callsTool) {
			c.unseen = c.Before(first)
			for c.seen = newest + 1; c.inside[c.seen]; {
				c.seen++
			}
		}
		for _, calls := range open {
			if slices.ContainsFunc(calls, func(i int) bool { return i >= first && i <= newest }) {
				c.openCall = c.unseen
			}
		}
	}
	return c
}

func callsTool(m recall.Message) bool {
	return slices.ContainsFunc(m.Content, func(p recall.Part) bool { return p.Type == recall.ToolCall })
}

// Stays reports whether the message at an index stays wherever the view is cut: the user's newest, the newest step
// with its results until the model has answered them, and what a cutter keeps.
func (c CutPoints) Stays(i int) bool { return i == c.user || c.isUnseen(i) || c.kept[i] }

// isUnseen reports whether a message is of the newest step or has a late result, and the model has not answered it.
func (c CutPoints) isUnseen(i int) bool { return i >= c.unseen && i < c.seen || c.unread[i] }

// keep lets messages stay wherever the view is cut, with what must not be separated from them.
func (c *CutPoints) keep(messages []int) {
	c.kept = map[int]bool{}
	for _, i := range messages {
		c.keepGroup(i)
	}
	for again := true; again; { // the late results of calls that stay
		again = false
		for _, p := range c.late {
			if c.kept[p.call] && !c.kept[p.result] {
				c.keepGroup(p.result)
				again = true
			}
		}
	}
}

// keepGroup keeps the group of a message.
func (c *CutPoints) keepGroup(i int) {
	if i < 0 || i >= len(c.inside)-1 {
		return
	}
	i = c.Before(i)
	c.kept[i] = true
	for i++; c.inside[i]; i++ {
		c.kept[i] = true
	}
}

// After returns the first cut point at or after i, but none after the newest group or an open call.
func (c CutPoints) After(i int) int {
	for i < len(c.inside)-1 && c.inside[i] {
		i++
	}
	return min(i, c.Last())
}

// abandoned reports whether results that the model has not answered can leave because the user spoke after them: those
// of the newest step, if it has all, and late ones.
func (c CutPoints) abandoned() bool {
	n := len(c.inside) - 1
	if c.openCall < n || c.unseen < n && c.user < c.seen {
		return false
	}
	for i := range c.unread {
		if i > c.user {
			return false
		}
	}
	return c.unseen < n || len(c.unread) > 0
}

// release lets the newest step and the late results leave.
func (c *CutPoints) release() {
	c.unseen, c.seen, c.unread = len(c.inside)-1, len(c.inside)-1, nil
}

// sameStep reports whether two adjacent messages are one answer of the assistant: its calls, and the call that waits
// for an approval, may be messages of their own.
func sameStep(a, b recall.Message) bool {
	return a.Role == recall.Assistant && b.Role == recall.Assistant &&
		a.StepID != nil && b.StepID != nil && *a.StepID == *b.StepID
}

// Before returns the last cut point at or before i.
func (c CutPoints) Before(i int) int {
	for i > 0 && c.inside[i] {
		i--
	}
	return i
}

// Last returns the cut point before the newest group of messages, or before the open call if that is earlier.
func (c CutPoints) Last() int {
	n := len(c.inside) - 1
	if n == 0 {
		return 0
	}
	return min(c.Before(n-1), c.openCall)
}
