package rest

import (
	"cmp"
	"fmt"
	"io"

	"github.com/loci-memory/loci/db"
)

// BodyBudget bounds the bytes of request bodies in memory at once. A Spool counts only its largest item. A zero field
// means the value in DefaultBudget.
type BodyBudget struct {
	Server int64 // bytes for all organizations together
	Org    int64 // bytes for one organization while no other has bodies; at least the largest body
	Small  int64 // bytes for the first smallBodyBytes of all bodies; one organization gets half while no other has bodies
}

// DefaultBudget has room for three of the largest items of a Spool at once: one organization may hold one, and leaves
// room for others.
var DefaultBudget = BodyBudget{Server: 192 << 20, Org: 96 << 20, Small: 64 << 20}

// heldBytes are the bytes of bodies in memory.
type heldBytes struct {
	large *db.Shares
	small *db.Shares // counts the first smallBodyBytes of each body; nil if they are in a file and not counted
}

// shares returns the budget's shares.
func (b BodyBudget) shares() heldBytes {
	server, org := cmp.Or(b.Server, DefaultBudget.Server), cmp.Or(b.Org, DefaultBudget.Org)
	small := cmp.Or(b.Small, DefaultBudget.Small)
	return heldBytes{large: db.NewShares(server, server-org), small: db.NewShares(small, small/2)}
}

// smallBodyBytes is how much of each body is counted apart, so that large bodies do not shut out small ones.
const smallBodyBytes = 64 << 10

// heldBody is a body that is being read into memory.
type heldBody struct {
	io.Reader
	in           heldBytes
	org          db.Org
	read         int64 // bytes so far
	small, large int64 // bytes counted in each of the shares
}

// grow raises the counted size of the body to a number of bytes. A *Problem of status 429 if there is no room.
func (h *heldBody) grow(size int64) error {
	if added := min(size, smallBodyBytes) - h.small; added > 0 && h.in.small != nil {
		if !h.in.small.TryTake(h.org, added, h.small) {
			return retryLater(codeTooMany, "The bodies of other requests have the memory that there is for them; try again in "+
				"a moment", "1")
		}
		h.small += added
	}
	if added := size - smallBodyBytes - h.large; added > 0 {
		if !h.in.large.TryTake(h.org, added, h.large) {
			return overloaded()
		}
		h.large += added
	}
	return nil
}

func (h *heldBody) Read(buffer []byte) (int, error) {
	n, err := h.Reader.Read(buffer)
	h.read += int64(n)
	if full := h.grow(h.read); full != nil {
		return n, full
	}
	return n, err
}

// release gives back the bytes that were counted.
func (h *heldBody) release() {
	h.in.large.Give(h.org, h.large)
	if h.in.small != nil {
		h.in.small.Give(h.org, h.small)
	}
}

// DefaultSpoolBytes bounds the files of all bodies that are being received. One organization leaves half to the others.
const DefaultSpoolBytes = 4 << 30

// overloaded is the problem of a request with a body for which other requests leave no memory.
func overloaded() *Problem {
	return retryLater(codeTooMany, fmt.Sprintf("Other large requests are being worked on; send those of more than %d "+
		"bytes one after the other, or try again in a moment", smallBodyBytes), "1")
}
