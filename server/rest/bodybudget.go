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
	Small  int64 // of the first smallBodyBytes of each, of all organizations; half of it of one that is alone
}

// DefaultBudget takes three items of the largest Spool at once, and one of each organization with room for others.
var DefaultBudget = BodyBudget{Server: 192 << 20, Org: 96 << 20, Small: 64 << 20}

// heldBytes are the bytes of bodies in memory.
type heldBytes struct {
	large *db.Shares
	small *db.Shares // the first smallBodyBytes of each; nil if they are not in memory, and not counted
}

// shares returns the budget's shares.
func (b BodyBudget) shares() heldBytes {
	server, org := cmp.Or(b.Server, DefaultBudget.Server), cmp.Or(b.Org, DefaultBudget.Org)
	small := cmp.Or(b.Small, DefaultBudget.Small)
	return heldBytes{large: db.NewShares(server, server-org), small: db.NewShares(small, small/2)}
}

// smallBodyBytes of each body are counted apart, so that large bodies do not shut out small ones.
const smallBodyBytes = 64 << 10

// heldBody is a body that is being read into memory.
type heldBody struct {
	io.Reader
	in           heldBytes
	org          db.Org
	read         int64 // so far
	small, large int64 // counted
}

// grow counts the body as having a number of bytes; a *Problem of status 429 if there is no room for it.
func (h *heldBody) grow(to int64) error {
	if more := min(to, smallBodyBytes) - h.small; more > 0 && h.in.small != nil {
		if !h.in.small.TryTake(h.org, more, h.small) {
			return retryLater(codeTooMany, "The bodies of other requests have the memory that there is for them; try again in "+
				"a moment", "1")
		}
		h.small += more
	}
	if more := to - smallBodyBytes - h.large; more > 0 {
		if !h.in.large.TryTake(h.org, more, h.large) {
			return overloaded()
		}
		h.large += more
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
func (h *heldBody) release() {
	h.in.large.Give(h.org, h.large)
	if h.in.small != nil {
		h.in.small.Give(h.org, h.small)
	}
}

// DefaultSpoolBytes is the most that the files of all bodies take that are being received. Half is a reserve for other
// organizations than one.
const DefaultSpoolBytes = 4 << 30

// overloaded is the error of a request whose body does not fit the memory that other requests leave.
func overloaded() *Problem {
	return retryLater(codeTooMany, fmt.Sprintf("Other large requests are being worked on; send those of more than %d "+
		"bytes one after the other, or try again in a moment", smallBodyBytes), "1")
}
