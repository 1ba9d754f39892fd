package rest

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/loci-memory/loci/db"
)

const (
	maxRequests    = 1024 // at work at the same time
	maxBodies      = 4096 // on their way at the same time
	maxBodiesOfKey = 1024 // of one key
)

// arrivals counts the bodies that are on their way.
type arrivals struct {
	mu   sync.Mutex
	all  int
	orgs map[db.Org]int
	keys map[sender]int
}

// sender is who sends a body: a key, or an organization without one.
type sender struct {
	org db.Org
	key string
}

func newArrivals() *arrivals {
	return &arrivals{orgs: map[db.Org]int{}, keys: map[sender]int{}}
}

// begin counts a body. A *Problem of status 429 if the key has maxBodiesOfKey, or if the organization has half of those
// that the others leave of maxBodies.
func (a *arrivals) begin(from sender) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	others := a.all - a.orgs[from.org]
	switch {
	case a.keys[from] >= maxBodiesOfKey:
		return retryLater(codeKeyLimit, fmt.Sprintf("The API key has %d requests under way whose bodies are not complete, "+
			"which is the most it may have: send those first", a.keys[from]), "1")
	case a.orgs[from.org] >= (maxBodies-others)/2:
		return retryLater(codeTooMany, "Too many requests are under way whose bodies are not complete; try again in a moment",
			"1")
	}
	a.all, a.orgs[from.org], a.keys[from] = a.all+1, a.orgs[from.org]+1, a.keys[from]+1
	return nil
}

// end counts a body no more.
func (a *arrivals) end(from sender) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.orgs[from.org], a.keys[from] = a.all-1, a.orgs[from.org]-1, a.keys[from]-1
	if a.orgs[from.org] == 0 {
		delete(a.orgs, from.org)
	}
	if a.keys[from] == 0 {
		delete(a.keys, from)
	}
}

// count returns how many bodies are on their way.
func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// arrivingBody is a body that is on its way until its end is read.
type arrivingBody struct {
	io.ReadCloser
	arrived func()       // once
	begin   func() error // takes the request's place; nil of a request that needs none
	over    bool
	refused error // of begin
}

// Read implements io.Reader. At the end of the body it takes the request's place; a *Problem if there is none.
func (b *arrivingBody) Read(into []byte) (int, error) {
	if b.refused != nil {
		return 0, b.refused
	}
	n, err := b.ReadCloser.Read(into)
	if !errors.Is(err, io.EOF) || b.over {
		return n, err
	}
	b.over = true
	b.arrived()
	if b.begin == nil {
		return n, err
	}
	if b.refused = b.begin(); b.refused != nil {
		return n, b.refused
	}
	return n, err
}

// body counts a body until its end is read, or arrived is called. A *Problem of status 429 as begin says.
func (a *arrivals) body(of io.ReadCloser, from sender) (*arrivingBody, error) {
	if err := a.begin(from); err != nil {
		return nil, err
	}
	return &arrivingBody{ReadCloser: of, arrived: sync.OnceFunc(func() { a.end(from) })}, nil
}
