package event_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// source is what a poller reads from. Each read waits until the test takes its keys from asked.
type source struct {
	t *testing.T

	mu     sync.Mutex
	values map[string]int
	fails  error
	asked  chan []string
}

func (s *source) read(ctx context.Context, keys []string) (map[string]int, error) {
	if len(keys) == 0 {
		s.t.Error("a read of no keys")
	}
	s.mu.Lock()
	values, err := maps.Clone(s.values), s.fails
	s.mu.Unlock()
	select {
	case s.asked <- slices.Sorted(slices.Values(keys)):
	case <-ctx.Done():
	}
	return values, err
}

func (s *source) set(fails error, values map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.values = fails, values
}

// newPoller runs a poller on a source until the test ends or stop is called. Errors go to failed.
func newPoller(
	t *testing.T,
	values map[string]int,
) (s *source, p *event.Poller[string, int], failed chan error, stop func()) {
	t.Helper()
	s = &source{t: t, values: values, asked: make(chan []string)}
	p, failed = event.NewPoller(time.Millisecond, s.read), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx, func(err error) { failed <- err }) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return s, p, failed, stop
}

// subscribe subscribes to a key with the value 1.
func subscribe(t *testing.T, p *event.Poller[string, int], key string) *event.Subscription[string, int] {
	t.Helper()
	s, err := p.Subscribe(1, key, 1)
	if err != nil {
		t.Fatalf("subscribe to %s: %v", key, err)
	}
	return s
}

// twoReads waits until the values set before are delivered. The first read may have begun before they were set; the
// second did not.
func (s *source) twoReads(want ...string) {
	s.t.Helper()
	<-s.asked
	if got := <-s.asked; !slices.Equal(got, want) {
		s.t.Errorf("the keys of one read: got %v, want %v", got, want)
	}
	<-s.asked // when a read begins, the values of the read before are delivered
}

func TestAPollerPassesOnTheNewestValue(t *testing.T) {
	t.Parallel()
	s, p, _, stop := newPoller(t, map[string]int{"a": 1, "b": 1})
	one, two, other := subscribe(t, p, "a"), subscribe(t, p, "a"), subscribe(t, p, "b")
	if got := <-one.Values; got != 1 {
		t.Errorf("at first: got %d, want 1", got)
	}
	for n := 2; n <= 4; n++ { // two takes none of these values
		s.set(nil, map[string]int{"a": n, "b": 1})
		s.twoReads("a", "b")
	}
	for name, sub := range map[string]*event.Subscription[string, int]{"one": one, "two": two} {
		if got := <-sub.Values; got != 4 {
			t.Errorf("%s: got %d, want the newest value, 4", name, got)
		}
	}
	if got := <-other.Values; got != 1 {
		t.Errorf("another key: got %d, want 1", got)
	}
	select {
	case got := <-other.Values:
		t.Errorf("a key that does not change: got %d, want nothing", got)
	default:
	}
	s.set(nil, map[string]int{"a": 5, "b": 1}) // not taken before the key is gone
	s.twoReads("a", "b")
	s.set(nil, map[string]int{"b": 1})
	for slices.Contains(<-s.asked, "a") { // until the subscriptions to a have ended
	}
	if got, open := <-one.Values; open {
		t.Errorf("a key that is gone: got %d, want the end", got)
	}
	go func() { // stop waits for a running read
		for range s.asked {
		}
	}()
	other.Close()
	other.Close()
	if _, open := <-other.Values; open || p.Count() != 0 {
		t.Errorf("after Close: open is %v, and %d subscriptions are left", open, p.Count())
	}
	late := subscribe(t, p, "b")
	stop()
	close(s.asked)
	if got, open := <-late.Values; open {
		t.Errorf("after Run: got %d, want the end", got)
	}
	if got, open := <-subscribe(t, p, "b").Values; open {
		t.Errorf("a subscription after Run: got %d, want the end", got)
	}
}

// A failed read is reported and ends no subscription. Without subscriptions nothing is read.
func TestAPollerReadsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, pollerReadsAgain) // the poller pauses for a second
}

func pollerReadsAgain(t *testing.T) {
	s, p, failed, _ := newPoller(t, nil)
	broken := errors.New("broken")
	s.set(broken, nil)
	sub := subscribe(t, p, "a")
	<-sub.Values
	<-s.asked
	if err := <-failed; !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the read", err)
	}
	s.set(nil, map[string]int{"a": 2})
	for got := 0; got == 0; { // the next read may have begun before
		select {
		case <-s.asked:
		case err := <-failed:
			if !errors.Is(err, broken) {
				t.Errorf("got %v, want the error of the read", err)
			}
		case value, open := <-sub.Values:
			if !open || value != 2 {
				t.Fatalf("after a failure: got %d, open: %t, want 2", value, open)
			}
			got = value
		}
	}
}

func TestSubscriptionsAreBoundedForEachOrganization(t *testing.T) {
	t.Parallel()
	p := event.NewPoller(time.Hour, func(context.Context, []string) (map[string]int, error) { return nil, nil })
	var last *event.Subscription[string, int]
	for range event.MaxSubscriptions {
		last = subscribe(t, p, "a")
	}
	if _, err := p.Subscribe(1, "b", 1); !errors.Is(err, db.ErrTooMany) {
		t.Errorf("one more: got %v, want ErrTooMany", err)
	}
	other, err := p.Subscribe(2, "a", 1)
	if err != nil {
		t.Fatalf("another organization: %v", err)
	}
	other.Close()
	if _, err := p.Subscribe(1, "b", 1); !errors.Is(err, db.ErrTooMany) {
		t.Errorf("one more after another organization's: got %v, want ErrTooMany", err)
	}
	last.Close()
	subscribe(t, p, "a")
}
