package compaction

import "github.com/loci-memory/loci/recall"

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
	open := newWaiting(messages)
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
					until[at] = i
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
		if open.within(first, newest) {
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

// waiting are the calls without a result: one belongs to the latest call of its id that has none.
type waiting struct {
	latest map[string]int // place in calls of the latest open call of an id
	calls  []waits
}

// waits is a call, and the place of the open one of its id before it, -1 if there is none.
type waits struct{ message, before int }

func newWaiting(messages []recall.Message) *waiting {
	return &waiting{latest: make(map[string]int, len(messages)/4)}
}

func (w *waiting) call(id string, message int) {
	before, again := w.latest[id]
	if !again {
		before = -1
	}
	w.latest[id] = len(w.calls)
	w.calls = append(w.calls, waits{message, before})
}

// result returns the message that has the call.
func (w *waiting) result(id string) (message int, ok bool) {
	at, ok := w.latest[id]
	if !ok {
		return 0, false
	}
	if before := w.calls[at].before; before >= 0 {
		w.latest[id] = before
	} else {
		delete(w.latest, id)
	}
	return w.calls[at].message, true
}

// within tells whether a call of the messages from one place to another, both included, has no result.
func (w *waiting) within(from, to int) bool {
	for _, at := range w.latest {
		for ; at >= 0; at = w.calls[at].before {
			if m := w.calls[at].message; m >= from && m <= to {
				return true
			}
		}
	}
	return false
}
