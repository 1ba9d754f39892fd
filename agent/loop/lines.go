package loop

import (
	"slices"
	"sync"
)

// maxInLine is how many requests wait for the end of a conversation's run on one server.
const maxInLine = 16

// lines are the requests that wait on this server for their turn, by the key of their conversation.
type lines struct {
	mu   sync.Mutex
	each map[int64][]chan struct{} // the first request of a line is on; the channels of the others are closed for it
}

// join adds a request at a line's end. turn is closed once it is the first. ok is false if the line is full.
func (l *lines) join(conversation int64) (turn chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.each[conversation]
	if len(line) >= maxInLine {
		return nil, false
	}
	turn = make(chan struct{})
	if len(line) == 0 {
		close(turn)
	}
	l.each[conversation] = append(line, turn)
	return turn, true
}

// leave takes a request out of a line, and lets the next one on if it was the first.
func (l *lines) leave(conversation int64, turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.each[conversation]
	at := slices.Index(line, turn)
	if line = slices.Delete(line, at, at+1); len(line) == 0 {
		delete(l.each, conversation)
		return
	}
	l.each[conversation] = line
	if at == 0 {
		close(line[0])
	}
}

func (l *lines) waiting(conversation int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.each[conversation]) > 0
}
