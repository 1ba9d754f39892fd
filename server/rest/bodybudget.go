package rest

import (
	"cmp"
	"fmt"
	"io"

	"github.com/loci-memory/loci/db"
)

// BodyBudget bounds the bytes of request bodies that are held in memory at once; of a Spool, those of its largest item.
// Zero fields are those of DefaultBudget.
type BodyBudget struct {
	Server int64 // of all organizations
	Org    int64 // of one that is alone; at least the largest body
}

// DefaultBudget takes three items of the largest Spool at once, and one of each organization with room for others.
var DefaultBudget = BodyBudget{Server: 192 << 20, Org: 96 << 20}

// shares returns the budget's shares.
func (b BodyBudget) shares() *db.Shares {
	server, org := cmp.Or(b.Server, DefaultBudget.Server), cmp.Or(b.Org, DefaultBudget.Org)
	return db.NewShares(server, server-org)
}

// freeBytes of each body are not counted, so that large bodies do not shut out small ones.
const freeBytes = 64 << 10

// heldBody is a body that is being read into memory.
type heldBody struct {
	io.Reader
	in          *db.Shares
	org         db.Org
	read, bytes int64 // so far; counted
}

// grow counts the body as having a number of bytes; a *Problem of status 429 if there is no room for it.
func (h *heldBody) grow(to int64) error {
	if more := to - freeBytes - h.bytes; more > 0 {
		if !h.in.TryTake(h.org, more, h.bytes) {
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
func (h *heldBody) release() { h.in.Give(h.org, h.bytes) }

// DefaultSpoolBytes is the most that the files of all bodies take that are being received. Half is a reserve for other
// organizations than one.
const DefaultSpoolBytes = 4 << 30

// overloaded is the error of a request whose body does not fit the memory that other requests leave.
func overloaded() *Problem {
	return retryLater(codeTooMany, fmt.Sprintf("Other large requests are being worked on; send those of more than %d "+
		"bytes one after the other, or try again in a moment", freeBytes), "1")
}
