package files

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// maxHeld is how many bytes of memory parsing one document takes here at most: the largest possible text, and as much
// again for the document itself, or for the text's segments and chunks.
const maxHeld = 2 * document.MaxTextBytes

// parsingMemory is the memory for all documents that are being parsed.
type parsingMemory struct {
	complex *db.Shares // room for three of the largest documents; one organization may have at most two of them
	plain   *db.Shares // of plain texts, which do not wait for others; room for two of the largest
}

func newParsing() parsingMemory {
	return parsingMemory{db.NewShares(3*maxHeld, maxHeld), db.NewShares(2*maxHeld, maxHeld/2)}
}

// heldBytes returns how much memory reading a document may take. A complex document may have a text of any size. A text
// that is larger than the shares counts as everything that one organization may have.
func heldBytes(in document.Input) int64 {
	if in.IsComplex() {
		return maxHeld
	}
	return min(2*in.SizeBytes, maxHeld)
}

const readPatience = 15 * time.Second // leaves the job enough time to read a document

// errParsing is the error of a job that will be tried again. The document is not the cause.
var errParsing = errors.New("the documents that are being parsed take the memory that the organization may have")

// reading is the share of a document that is being parsed.
type reading struct {
	shares *db.Shares
	org    db.Org
	bytes  int64
}

// startReading waits until an organization may hold a document in memory. errParsing if that takes too long.
func (s *Store) startReading(ctx context.Context, org db.Org, input document.Input) (*reading, error) {
	bounded, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	r := &reading{s.parsing.plain, org, heldBytes(input)}
	if input.IsDocument() {
		r.shares = s.parsing.complex
	}
	err := r.shares.Take(bounded, org, r.bytes)
	if err != nil && ctx.Err() == nil {
		err = errParsing
	}
	return r, err
}

// shrink gives back everything above the given number of bytes.
func (r *reading) shrink(to int64) {
	if more := r.bytes - to; more > 0 {
		r.shares.Give(r.org, more)
		r.bytes = to
	}
}
