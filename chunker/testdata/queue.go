// Package queue is a small bounded queue.
package queue

import (
	"errors"
	"sync"
)

// ErrFull means that the queue has no room.
// Try again later.
var ErrFull = errors.New("queue is full")

// A Queue holds at most a fixed number of items.
type Queue struct {
	mu    sync.Mutex
	items []string
	max   int
}

// The operations follow.

// Push adds an item at the end.
func (q *Queue) Push(item string) error {
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.items) >= q.max {
		return ErrFull
	}

	q.items = append(q.items, item)
	return nil
}

// Pop takes the item at the front, and tells whether there was one.
func (q *Queue) Pop() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return "", false
	}
	item := q.items[0]
	q.items = q.items[1:]
	return item, true
}

// Drain takes all.
func (q *Queue) Drain() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.items
	q.items = nil
	for i, item := range all {
		if item == "" {
			all[i] = "(empty)"
		} else if len(item) > 80 {
			all[i] = item[:80]
		}
		// Each item is logged by whoever asked for it, so nothing is logged here.
		all[i] += "\n"
	}
	return all
}
