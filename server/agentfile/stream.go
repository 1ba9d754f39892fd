package agentfile

import (
	"iter"

	"github.com/loci-memory/loci/db"
)

// stream is a list of a full file that is read item by item.
type stream[T any] struct {
	name  string
	next  func() (item, error, bool)
	stop  func()
	ready func(*T) error // checks an item, and replaces its ids by the new ones
	held  *T             // was read, and is not taken yet
	place string         // offset of held in the file
	err   error
}

func streamOf[T any](i *imports, name string, ready func(*T) error) *stream[T] {
	next, stop := iter.Pull2(i.file.items(name))
	return &stream[T]{name: name, next: next, stop: stop, ready: ready}
}

// peek returns the next item; nil at the end of the list or after an error.
func (s *stream[T]) peek() *T {
	if s.held != nil || s.err != nil {
		return s.held
	}
	it, err, ok := s.next()
	if !ok || err != nil {
		s.err = err
		return nil
	}
	value := new(T)
	if s.err = decodeOwn(it.place, it.raw, value); s.err == nil {
		s.err = at(it.place, s.ready(value))
	}
	if s.err == nil {
		s.held, s.place = value, it.place
	}
	return s.held
}

// take yields the next items while belongs returns true.
func (s *stream[T]) take(belongs func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v := s.peek(); v != nil && belongs(*v); v = s.peek() {
			s.held = nil
			if !yield(*v, nil) {
				return
			}
		}
		if s.err != nil {
			yield(*new(T), s.err)
		}
	}
}

// all yields all remaining items.
func (s *stream[T]) all() iter.Seq2[T, error] { return s.take(func(T) bool { return true }) }

// end returns ErrInvalid if an item is left, because that item has no owner in the file.
func (s *stream[T]) end() error {
	if s.peek() != nil {
		return db.Invalid("%s: it belongs to nothing that is in the file before it", s.place)
	}
	return s.err
}
