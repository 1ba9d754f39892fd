package event

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// MaxSubscriptions is how many subscriptions an organization may have at a poller.
const MaxSubscriptions = 1000

const (
	pollTimeout = 10 * time.Second // limit of one read
	pollPause   = time.Second      // wait after a read that failed
)

// ReadFunc reads the values of keys. A key that no longer exists is missing in the result.
type ReadFunc[K comparable, V any] func(ctx context.Context, keys []K) (map[K]V, error)

// Poller tells the subscribers of keys when the values of their keys change. Each read covers all subscribed keys,
// however many subscribers each has. Without subscriptions it reads nothing.
type Poller[K comparable, V any] struct {
	read  ReadFunc[K, V]
	every time.Duration
	begin chan struct{} // wakes Run for the first subscription

	mu            sync.Mutex
	subscriptions map[*Subscription[K, V]]struct{}
	byOrg         map[db.Org]int // number of subscriptions per organization
	stopped       bool
}

// NewPoller returns a poller that reads at the given interval while Run runs.
func NewPoller[K comparable, V any](every time.Duration, read ReadFunc[K, V]) *Poller[K, V] {
	return &Poller[K, V]{read: read, every: every, begin: make(chan struct{}, 1),
		subscriptions: map[*Subscription[K, V]]struct{}{}, byOrg: map[db.Org]int{}}
}

// Subscription receives the values of one key.
type Subscription[K comparable, V any] struct {
	// Values holds the newest value until it is taken. It is closed, and empty, once the key is gone, after Close, and
	// when Run ends.
	Values <-chan V

	poller *Poller[K, V]
	org    db.Org
	key    K
	last   V
	values chan V
}

// Subscribe returns an organization's subscription to a key. now is the key's current value. The caller closes the
// subscription. ErrTooMany if the organization has MaxSubscriptions already.
func (p *Poller[K, V]) Subscribe(org db.Org, key K, now V) (*Subscription[K, V], error) {
	s := &Subscription[K, V]{poller: p, org: org, key: key, last: now, values: make(chan V, 1)}
	s.Values = s.values
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		close(s.values)
		return s, nil
	case p.byOrg[org] >= MaxSubscriptions:
		return nil, db.TooMany("%d streams of this organization are open, which is the most: close some, or poll",
			MaxSubscriptions)
	}
	s.values <- now
	p.byOrg[org]++
	p.subscriptions[s] = struct{}{}
	select {
	case p.begin <- struct{}{}:
	default:
	}
	return s, nil
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription[K, V]) Close() {
	s.poller.mu.Lock()
	defer s.poller.mu.Unlock()
	s.end()
}

// Count returns the number of subscriptions.
func (p *Poller[K, V]) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.subscriptions)
}

// Run reads until ctx ends, and then ends all subscriptions. It passes the error of a failed read to failed, and reads
// again after a pause.
func (p *Poller[K, V]) Run(ctx context.Context, failed func(error)) {
	defer p.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.begin:
		}
		for pause := p.every; p.Count() > 0 && db.Pause(ctx, pause); {
			pause = p.every
			if err := p.poll(ctx); err != nil && ctx.Err() == nil {
				failed(err)
				pause = max(pause, pollPause)
			}
		}
	}
}

func (p *Poller[K, V]) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	byKey := map[K][]*Subscription[K, V]{}
	var keys []K
	p.mu.Lock()
	for s := range p.subscriptions {
		if byKey[s.key] == nil {
			keys = append(keys, s.key)
		}
		byKey[s.key] = append(byKey[s.key], s)
	}
	p.mu.Unlock()
	values, err := p.read(ctx, keys)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, list := range byKey {
		value, exists := values[key]
		for _, s := range list {
			if exists {
				s.put(value)
			} else {
				s.end()
			}
		}
	}
	return nil
}

// put stores a value if it differs from the last one. It replaces a value that was not taken yet. The caller holds the
// poller's lock.
func (s *Subscription[K, V]) put(value V) {
	if _, open := s.poller.subscriptions[s]; !open || reflect.DeepEqual(value, s.last) {
		return
	}
	s.last = value
	s.drop()
	s.values <- value
}

func (s *Subscription[K, V]) drop() {
	select {
	case <-s.values:
	default:
	}
}

// end ends the subscription. Further calls do nothing. The caller holds the poller's lock.
func (s *Subscription[K, V]) end() {
	if _, open := s.poller.subscriptions[s]; open {
		delete(s.poller.subscriptions, s)
		if s.poller.byOrg[s.org]--; s.poller.byOrg[s.org] == 0 {
			delete(s.poller.byOrg, s.org)
		}
		s.drop()
		close(s.values)
	}
}

func (p *Poller[K, V]) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for s := range p.subscriptions {
		s.end()
	}
}
