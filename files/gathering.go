package files

import (
	"context"
	"errors"
	"sync"
)

// gathering handles things of one kind together. Things that arrive while earlier ones with the same key are being
// handled, or while all slots are taken, are then handled together by one call.
type gathering[K comparable, T any] struct {
	slots chan struct{} // one slot per running call
	most  int           // most things per call
	// each handles things together, all or none of them. If the call fails, each thing is handled again alone.
	each func(ctx context.Context, key K, things []T) error

	mu    sync.Mutex
	lines map[K][]*gathered[T] // things that wait; a key is present while one of its things leads
}

// gathered is a thing that waits.
type gathered[T any] struct {
	thing T
	done  chan error // gets errLead when the thing should lead, otherwise the result
}

var (
	errLead  = errors.New("the next to lead")
	errAlone = errors.New("to be done alone")
)

func newGathering[K comparable, T any](slots, most int,
	each func(ctx context.Context, key K, things []T) error) *gathering[K, T] {
	return &gathering[K, T]{slots: make(chan struct{}, slots), most: most, each: each,
		lines: map[K][]*gathered[T]{}}
}

// do handles a thing, together with others of the same key if there are any. Their call uses the context of one of
// them.
func (g *gathering[K, T]) do(ctx context.Context, key K, thing T) error {
	mine := &gathered[T]{thing, make(chan error, 1)}
	g.mu.Lock()
	line, led := g.lines[key]
	g.lines[key] = append(line, mine)
	g.mu.Unlock()
	if !led {
		mine.done <- errLead
	}
	err := <-mine.done
	if errors.Is(err, errLead) {
		err = g.lead(ctx, key)
	}
	if errors.Is(err, errAlone) {
		err = g.each(ctx, key, []T{thing})
	}
	return err
}

// lead handles the first things of a line, and lets the next one lead. If handling several together fails, each gets
// errAlone.
func (g *gathering[K, T]) lead(ctx context.Context, key K) error {
	g.slots <- struct{}{}
	defer func() { <-g.slots }()
	g.mu.Lock()
	n := min(len(g.lines[key]), g.most)
	group := g.lines[key][:n:n]
	g.lines[key] = g.lines[key][n:]
	g.mu.Unlock()
	err := errAlone // the result if the call panics
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, other := range group[1:] {
			other.done <- err
		}
		if rest := g.lines[key]; len(rest) > 0 {
			rest[0].done <- errLead
		} else {
			delete(g.lines, key)
		}
	}()
	if failed := g.each(ctx, key, mapped(group, func(one *gathered[T]) T { return one.thing })); n == 1 || failed == nil {
		err = failed
	}
	return err
}
