package clip

import (
	"slices"

	"github.com/loci-memory/loci/recall"
)

// CutPoints says where a view may be cut. A cut must not separate a tool call from its result, messages between the
// two, or messages of one step of the assistant. A result is late if it came after the assistant or the user went on. A
// late result may stay when its call leaves, but may not leave while its call stays.
type CutPoints struct {
	Inside   []bool       // inside[i]: a cut before message i is not allowed; one more entry than messages
	User     int          // index of the user's newest message; -1 if there is none
	OpenCall int          // start of the newest step if one of its calls waits for its result; else the number of messages
	Unseen   int          // start of the newest step if its results have no answer; else the number of messages
	Seen     int          // index behind the results of the step at Unseen; else the number of messages
	kept     map[int]bool // indexes of other messages that stay wherever the view is cut
	unread   map[int]bool // indexes of late results that the model has not answered
	Late     []LatePair   // in the order of the results
}

// LatePair holds the indexes of a call and of its late result.
type LatePair struct{ Call, Result int }

// CutPointsOf returns where a view with these messages may be cut.
func CutPointsOf(messages []recall.Message) CutPoints {
	n := len(messages)
	c := CutPoints{Inside: make([]bool, n+1), User: -1, OpenCall: n, Unseen: n, Seen: n}
	until := make([]int, n) // index of a message → index of the last message that may not be cut off from it
	newest := -1            // the assistant's newest message
	wentOn := -1            // the last message that makes results of earlier calls late
	c.unread = map[int]bool{}
	open := recall.OpenCalls[int]{}
	for i, m := range messages {
		until[i] = i
		switch m.Role {
		case recall.User:
			c.User, wentOn = i, i
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
				call, ok := open.Answer(p.CallID)
				switch {
				case ok && call < wentOn:
					c.Late, c.unread[i] = append(c.Late, LatePair{call, i}), true
				case ok:
					until[call] = i
				case !p.Orphan: // its call has left
					c.unread[i] = true
				}
			}
		}
	}
	end := -1
	for i := range messages {
		c.Inside[i] = i <= end
		end = max(end, until[i])
	}
	if newest >= 0 {
		first := newest
		for first > 0 && sameStep(messages[first-1], messages[first]) {
			first--
		}
		if slices.ContainsFunc(messages[first:newest+1], callsTool) {
			c.Unseen = c.Before(first)
			for c.Seen = newest + 1; c.Inside[c.Seen]; {
				c.Seen++
			}
		}
		if spokenAfter(messages, newest) >= patientTurns {
			open = nil
		}
		for _, calls := range open {
			if slices.ContainsFunc(calls, func(i int) bool { return i >= first && i <= newest }) {
				c.OpenCall = c.Unseen
			}
		}
	}
	return c
}

// patientTurns is how many messages of the user end the wait for the result of a call. One may come while a tool runs.
const patientTurns = 2

// spokenAfter counts the messages of the user behind message i.
func spokenAfter(messages []recall.Message, i int) (n int) {
	for _, m := range messages[i+1:] {
		if m.Role == recall.User {
			n++
		}
	}
	return n
}

func callsTool(m recall.Message) bool {
	return slices.ContainsFunc(m.Content, func(p recall.Part) bool { return p.Type == recall.ToolCall })
}

// Stays reports whether no cut removes message i. That holds for the user's newest message, the newest step with its
// results until the model has answered them, and the messages that a cutter keeps.
func (c CutPoints) Stays(i int) bool { return i == c.User || c.IsUnseen(i) || c.kept[i] }

// IsUnseen reports whether the model has not yet answered message i, and it belongs to the newest step or has a late
// result.
func (c CutPoints) IsUnseen(i int) bool { return i >= c.Unseen && i < c.Seen || c.unread[i] }

// Keep makes messages stay wherever the view is cut. Messages that must not be separated from them stay, too.
func (c *CutPoints) Keep(messages []int) {
	c.kept = map[int]bool{}
	for _, i := range messages {
		c.keepGroup(i)
	}
	for again := true; again; { // also keep late results of calls that stay
		again = false
		for _, p := range c.Late {
			if c.kept[p.Call] && !c.kept[p.Result] {
				c.keepGroup(p.Result)
				again = true
			}
		}
	}
}

// keepGroup keeps message i and all that must not be separated from it.
func (c *CutPoints) keepGroup(i int) {
	if i < 0 || i >= len(c.Inside)-1 {
		return
	}
	i = c.Before(i)
	c.kept[i] = true
	for i++; c.Inside[i]; i++ {
		c.kept[i] = true
	}
}

// After returns the first cut point at or after i. It returns none behind the newest group or an open call.
func (c CutPoints) After(i int) int {
	for i < len(c.Inside)-1 && c.Inside[i] {
		i++
	}
	return min(i, c.Last())
}

// Abandoned reports whether the user spoke after results that the model has not answered: the complete results of the
// newest step, or late results. Such results may leave.
func (c CutPoints) Abandoned() bool {
	n := len(c.Inside) - 1
	if c.OpenCall < n || c.Unseen < n && c.User < c.Seen {
		return false
	}
	for i := range c.unread {
		if i > c.User {
			return false
		}
	}
	return c.Unseen < n || len(c.unread) > 0
}

// Release lets the newest step and the late results leave.
func (c *CutPoints) Release() {
	c.Unseen, c.Seen, c.unread = len(c.Inside)-1, len(c.Inside)-1, nil
}

// sameStep reports whether two adjacent messages belong to one answer of the assistant. Its calls, and a call that
// waits for approval, may be separate messages.
func sameStep(a, b recall.Message) bool {
	return a.Role == recall.Assistant && b.Role == recall.Assistant &&
		a.StepID != nil && b.StepID != nil && *a.StepID == *b.StepID
}

// Before returns the last cut point at or before i.
func (c CutPoints) Before(i int) int {
	for i > 0 && c.Inside[i] {
		i--
	}
	return i
}

// Last returns the cut point before the newest group of messages, or before the open call if that comes earlier.
func (c CutPoints) Last() int {
	n := len(c.Inside) - 1
	if n == 0 {
		return 0
	}
	return min(c.Before(n-1), c.OpenCall)
}
