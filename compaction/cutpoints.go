package compaction

import (
	"slices"

	"github.com/loci-memory/loci/recall"
)

// CutPoints says where a view may be cut. A cut separates neither a tool call from its result, nor messages between
// the two, nor messages of one step of the assistant.
type CutPoints struct {
	inside   []bool       // inside[i]: a cut before message i separates what belongs together; one more than messages
	user     int          // index of the user's newest message; -1 if there is none
	openCall int          // index where the newest step begins if one of its calls has no result; else their number
	unseen   int          // index where the newest step begins if no answer follows its calls' results; else as above
	seen     int          // index after the results of that step; else the number of messages
	kept     map[int]bool // indexes of other messages that stay wherever the view is cut
}

// CutPointsOf returns where a view with some messages may be cut.
func CutPointsOf(messages []recall.Message) CutPoints {
	n := len(messages)
	c := CutPoints{inside: make([]bool, n+1), user: -1, openCall: n, unseen: n, seen: n}
	until := make([]int, n) // the last message that belongs to each
	newest := -1            // of the assistant
	open := recall.OpenCalls[int]{}
	for i, m := range messages {
		until[i] = i
		switch m.Role {
		case recall.User:
			c.user = i
		case recall.Assistant:
			newest = i
			if i > 0 && sameStep(messages[i-1], m) {
				until[i-1] = i
			}
		}
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, i)
			case recall.ToolReturn:
				if at, ok := open.Answer(p.CallID); ok {
					until[at] = i
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

// isUnseen reports whether a message is of the newest step, whose results the model has not answered.
func (c CutPoints) isUnseen(i int) bool { return i >= c.unseen && i < c.seen }

// keep lets messages stay wherever the view is cut, with what must not be separated from them.
func (c *CutPoints) keep(messages []int) {
	c.kept = map[int]bool{}
	for _, i := range messages {
		if i < 0 || i >= len(c.inside)-1 {
			continue
		}
		i = c.Before(i)
		c.kept[i] = true
		for i++; c.inside[i]; i++ {
			c.kept[i] = true
		}
	}
}

// After returns the first cut point at or after i, but none after the newest group or an open call.
func (c CutPoints) After(i int) int {
	for i < len(c.inside)-1 && c.inside[i] {
		i++
	}
	return min(i, c.Last())
}

// abandoned reports whether the newest step has all its results, and the user spoke after them.
func (c CutPoints) abandoned() bool {
	n := len(c.inside) - 1
	return c.unseen < n && c.openCall == n && c.user >= c.seen
}

// release lets the newest step leave.
func (c *CutPoints) release() { c.unseen, c.seen = len(c.inside)-1, len(c.inside)-1 }

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
