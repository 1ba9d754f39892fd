package files

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// maxHeld is the most memory that parsing one document takes here, in bytes: a text of the largest size, and as much
// for the document that it is read from, or for its segments and chunks.
const maxHeld = 2 * document.MaxTextBytes

// newParsing returns the shares of the memory of all documents that are being parsed: that of three of the largest, of
// which one organization has at most two.
func newParsing() *db.Shares { return db.NewShares(3*maxHeld, maxHeld) }

// heldBytes returns the memory that reading a document may take. The text of a complex one may have any size, whatever
// its own. A text that is larger than the shares counts as all that one organization may have.
func heldBytes(in document.Input) int64 {
	if in.IsComplex() {
		return maxHeld
	}
	return min(2*in.SizeBytes, 2*maxHeld)
}

const readPatience = 15 * time.Second // leaves a job the time to read a document

// errParsing is the error of a job that is tried again later. The document has no part in it.
var errParsing = errors.New("the documents that are being parsed take the memory that the organization may have")

// reading is the share of a document that is being parsed.
type reading struct {
	shares *db.Shares
	org    db.Org
	bytes  int64
}

// startReading waits until an organization may hold a document in memory; errParsing if that takes too long.
func (s *Store) startReading(ctx context.Context, org db.Org, in document.Input) (*reading, error) {
	bounded, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	r := &reading{s.parsing, org, heldBytes(in)}
	err := s.parsing.Take(bounded, org, r.bytes)
	if err != nil && ctx.Err() == nil {
		err = errParsing
	}
	return r, err
}

// shrink gives back what exceeds a number of bytes.
func (r *reading) shrink(to int64) {
	if more := r.bytes - to; more > 0 {
		r.shares.Give(r.org, more)
		r.bytes = to
	}
}
