package agentfile

import (
	"iter"

	"github.com/loci-memory/loci/db"
)

// stream is a list of a full file, read item by item.
type stream[T any] struct {
	name  string
	next  func() (item, error, bool)
	stop  func()
	ready func(*T) error // checks an item, and gives it the ids that it gets
	held  *T             // read, and not taken
	place string         // of held
	err   error
}

func streamOf[T any](i *imports, name string, ready func(*T) error) *stream[T] {
	next, stop := iter.Pull2(i.file.items(name))
	return &stream[T]{name: name, next: next, stop: stop, ready: ready}
}

// peek returns the next item; nil at the end of the list, and after an error.
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

// take yields the next items as long as they belong to an owner.
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

// all yields all items.
func (s *stream[T]) all() iter.Seq2[T, error] { return s.take(func(T) bool { return true }) }

// end returns ErrInvalid if an item is left, which belongs to no owner.
func (s *stream[T]) end() error {
	if s.peek() != nil {
		return db.Invalid("%s: it belongs to nothing that is in the file before it", s.place)
	}
	return s.err
}
