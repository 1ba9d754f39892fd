package rest

import (
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/db"
)

// The rows of an answer are in memory up to four times: as Postgres sent them, as Go values, as JSON, and as the buffer
// in which the JSON grew.
const (
	maxAnswerBytes   = 32 << 20 // bytes of rows in one answer
	freeAnswerBytes  = 1 << 20  // bytes of rows in each answer that do not count in allAnswersBytes
	allAnswersBytes  = 96 << 20 // bytes of rows in all answers at once
	answersForOthers = 48 << 20 // a part of allAnswersBytes that one organization must leave to the others
)

// ReadsMore says that an operation reads more rows than it answers with. Bytes beyond maxAnswerBytes are not counted.
func ReadsMore(op *operation) { op.readsMore = true }

// heldAnswer counts the bytes of an answer's rows until the answer was sent. Several goroutines may read the rows.
type heldAnswer struct {
	in        *db.Shares
	org       db.Org
	readsMore bool

	mu          sync.Mutex
	read, bytes int64 // bytes read so far, and bytes counted in the shares
}

// boundAnswers returns a middleware that bounds the memory of an operation's answers. A *Problem of status 422 if an
// answer is too large, of status 429 if the answers to others leave no room for it.
func (a *API) boundAnswers(readsMore bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		held := &heldAnswer{in: a.answers, org: Org(ctx.Context()), readsMore: readsMore}
		defer held.release()
		next(huma.WithContext(ctx, db.WithReading(ctx.Context(), held.add)))
	}
}

// release gives back the bytes that were counted.
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
	excess := min(h.read, maxAnswerBytes) - freeAnswerBytes - h.bytes
	if excess <= 0 {
		return nil
	}
	if !h.in.TryTake(h.org, excess, h.bytes) {
		return retryLater(codeTooMany, "Other large answers are being made or sent; try again in a moment", "1")
	}
	h.bytes += excess
	return nil
}
