package compaction

import (
	"slices"

	"github.com/loci-memory/loci/recall"
)

// groups says which messages of a view belong together: a call of a tool and its result with all that stands between them, so that calls
// made in parallel and their results are one group, and messages of one step of the assistant that follow each other.
type groups struct {
	parts   []bool // parts[i]: a cut before message i parts a group; one more than there are messages
	user    int    // the newest message of the user, -1 if there is none
	pending int    // where the group begins that has the newest calls, if one of them is open; else the number of messages
}

func groupsOf(messages []recall.Message) groups {
	n := len(messages)
	g := groups{parts: make([]bool, n+1), user: -1, pending: n}
	until := make([]int, n) // the last message that belongs to each
	newest := -1            // of the assistant
	open := waiting{}
	for i, m := range messages {
		until[i] = i
		switch m.Role {
		case recall.User:
			g.user = i
		case recall.Assistant:
			newest = i
			if i > 0 && sameStep(messages[i-1], m) {
				until[i-1] = i
			}
		}
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.call(p.CallID, i)
			case recall.ToolReturn:
				if at, ok := open.result(p.CallID); ok {
					until[at] = max(until[at], i)
				}
			}
		}
	}
	end := -1
	for i := range messages {
		g.parts[i] = i <= end
		end = max(end, until[i])
	}
	if newest >= 0 {
		first := newest
		for first > 0 && sameStep(messages[first-1], messages[first]) {
			first--
		}
		if open.within(messages[first:newest+1], first) {
			g.pending = g.before(first)
		}
	}
	return g
}

// sameStep tells whether two messages that follow each other are one answer of the assistant: what it calls and what it waits to be
// allowed may be messages of their own.
func sameStep(a, b recall.Message) bool {
	return a.Role == recall.Assistant && b.Role == recall.Assistant && a.StepID != nil && b.StepID != nil && *a.StepID == *b.StepID
}

// before is the last place at or before i where a cut parts nothing.
func (g groups) before(i int) int {
	for i > 0 && g.parts[i] {
		i--
	}
	return i
}

// last is where the newest group begins, or that of the open call if it is before.
func (g groups) last() int {
	n := len(g.parts) - 1
	if n == 0 {
		return 0
	}
	return min(g.before(n-1), g.pending)
}

// waiting are the calls without a result, by their ids: a result belongs to the latest call of its id that has none.
type waiting map[string][]int

func (w waiting) call(id string, at int) { w[id] = append(w[id], at) }

func (w waiting) result(id string) (at int, ok bool) {
	calls := w[id]
	if len(calls) == 0 {
		return 0, false
	}
	w[id] = calls[:len(calls)-1]
	return calls[len(calls)-1], true
}

// within tells whether a call of messages, the first of which is at the given place, has no result.
func (w waiting) within(messages []recall.Message, first int) bool {
	for i, m := range messages {
		for _, p := range m.Content {
			if p.Type == recall.ToolCall && slices.Contains(w[p.CallID], first+i) {
				return true
			}
		}
	}
	return false
}
