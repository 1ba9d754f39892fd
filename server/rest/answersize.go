package rest

import (
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/db"
)

// An answer is made of rows, each of which is in memory up to four times: as it came, as a value, as JSON, and as what
// the JSON grew from.
const (
	maxAnswerBytes   = 32 << 20 // of the rows of one answer
	freeAnswerBytes  = 1 << 20  // of each are not counted
	allAnswersBytes  = 96 << 20 // of the rows of all
	answersForOthers = 48 << 20 // of these, for other organizations than one
)

// ReadsMore lets an operation read more than it answers. What it reads beyond the bound of an answer does not count.
func ReadsMore(op *operation) { op.readsMore = true }

// heldAnswer counts the bytes of the rows that an answer is made of, until it was sent. Several goroutines may read
// them.
type heldAnswer struct {
	in        *db.Shares
	org       db.Org
	readsMore bool

	mu          sync.Mutex
	read, bytes int64 // so far; counted
}

// boundAnswers returns a middleware that bounds the memory of an operation's answers. A larger answer is a *Problem of
// status 422, and one for which others leave no room of status 429.
func (a *API) boundAnswers(readsMore bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		held := &heldAnswer{in: a.answers, org: Org(ctx.Context()), readsMore: readsMore}
		defer held.release()
		next(huma.WithContext(ctx, db.WithReading(ctx.Context(), held.add)))
	}
}

// release counts the rows no more.
func (h *heldAnswer) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.in.Give(h.org, h.bytes)
}

func (h *heldAnswer) add(bytes int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read += bytes; h.read > maxAnswerBytes && !h.readsMore {
		return Unprocessable("request", "the answer would have more than 32 MiB; ask for fewer things at a time (limit), or "+
			"for a part of them")
	}
	more := min(h.read, maxAnswerBytes) - freeAnswerBytes - h.bytes
	if more <= 0 {
		return nil
	}
	if !h.in.TryTake(h.org, more, h.bytes) {
		return retryLater(codeTooMany, "Other large answers are being made or sent; try again in a moment", "1")
	}
	h.bytes += more
	return nil
}
