package rest

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/loci-memory/loci/db"
)

const (
	maxRequests    = 1024 // requests being worked on at the same time
	maxBodies      = 4096 // bodies that are not complete, of all senders
	maxBodiesOfKey = 1024 // bodies that are not complete, of one key
)

// arrivals counts the bodies that are not complete.
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

// begin counts a body. A *Problem of status 429 if the sender has maxBodiesOfKey already, or if the organization has
// half of the bodies that the others leave of maxBodies.
func (a *arrivals) begin(from sender) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	ofOthers := a.all - a.orgs[from.org]
	switch {
	case a.keys[from] >= maxBodiesOfKey:
		return retryLater(codeKeyLimit, fmt.Sprintf("The API key has %d requests under way whose bodies are not complete, "+
			"which is the most it may have: send those first", a.keys[from]), "1")
	case a.orgs[from.org] >= (maxBodies-ofOthers)/2:
		return retryLater(codeTooMany, "Too many requests are under way whose bodies are not complete; try again in a moment",
			"1")
	}
	a.all, a.orgs[from.org], a.keys[from] = a.all+1, a.orgs[from.org]+1, a.keys[from]+1
	return nil
}

// end takes a body out of the count.
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

// count returns how many bodies are not complete.
func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// arrivingBody is a request's body, which counts as arriving until its end is read.
type arrivingBody struct {
	io.ReadCloser
	arrived func()       // ends the counting; works once
	begin   func() error // takes the request's place among those at work; nil if the request needs none
	over    bool
	refused error // the error of begin
}

// Read implements io.Reader. At the end of the body it takes the request's place; a *Problem of status 429 if there is
// none.
func (b *arrivingBody) Read(buffer []byte) (int, error) {
	if b.refused != nil {
		return 0, b.refused
	}
	n, err := b.ReadCloser.Read(buffer)
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

// body wraps a body, which counts until its end is read or arrived is called. Errors as begin.
func (a *arrivals) body(of io.ReadCloser, from sender) (*arrivingBody, error) {
	if err := a.begin(from); err != nil {
		return nil, err
	}
	return &arrivingBody{ReadCloser: of, arrived: sync.OnceFunc(func() { a.end(from) })}, nil
}
