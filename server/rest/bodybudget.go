package rest

import (
	"cmp"
	"fmt"
	"io"
	"sync"

	"github.com/loci-memory/loci/db"
)

// BodyBudget bounds the bytes of request bodies that are held in memory at once; of a Spool, those of its largest item.
// Zero fields are those of DefaultBudget.
type BodyBudget struct {
	Server int64 // of all organizations
	Org    int64 // of each; at least the largest body
}

// DefaultBudget takes three items of the largest Spool at once, and one of each organization with room for others.
var DefaultBudget = BodyBudget{Server: 192 << 20, Org: 96 << 20}

// freeBytes of each body are not counted, so that large bodies do not shut out small ones.
const freeBytes = 64 << 10

// bodies counts the bytes of bodies that are held.
type bodies struct {
	limit BodyBudget
	mu    sync.Mutex
	total int64
	orgs  map[db.Org]int64
}

func newBodies(b BodyBudget) *bodies {
	return &bodies{limit: BodyBudget{Server: cmp.Or(b.Server, DefaultBudget.Server),
		Org: cmp.Or(b.Org, DefaultBudget.Org)}, orgs: map[db.Org]int64{}}
}

// add counts bytes of an organization, and reports false if there is no room for them. n may be negative.
func (b *bodies) add(org db.Org, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && (b.total+n > b.limit.Server || b.orgs[org]+n > b.limit.Org) {
		return false
	}
	b.total, b.orgs[org] = b.total+n, b.orgs[org]+n
	if b.orgs[org] == 0 {
		delete(b.orgs, org)
	}
	return true
}

// heldBody is a body that is being read into memory.
type heldBody struct {
	io.Reader
	in          *bodies
	org         db.Org
	read, bytes int64 // so far; counted
}

// grow counts the body as one of so many bytes; a *Problem of status 429 if there is no room for it.
func (h *heldBody) grow(to int64) error {
	if more := to - freeBytes - h.bytes; more > 0 {
		if !h.in.add(h.org, more) {
			return overloaded()
		}
		h.bytes += more
	}
	return nil
}

func (h *heldBody) Read(into []byte) (int, error) {
	n, err := h.Reader.Read(into)
	h.read += int64(n)
	if full := h.grow(h.read); full != nil {
		return n, full
	}
	return n, err
}

// release counts the body no more.
func (h *heldBody) release() { h.in.add(h.org, -h.bytes) }

// overloaded is a request whose body would take too much memory beside those that are being worked on.
func overloaded() *Problem {
	return retryLater(codeTooMany, fmt.Sprintf("Other large requests are being worked on; send those of more than %d "+
		"bytes one after the other, or try again in a moment", freeBytes), "1")
}
