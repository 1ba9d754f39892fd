package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// whyBusy replaces a *loop.BusyError by a 503 if the database keeps the other run from ending. Then the client cannot
// help by waiting for that run or by cancelling it.
func (s *Server) whyBusy(ctx context.Context, a *rest.API, err error) error {
	busy, isBusy := errors.AsType[*loop.BusyError](err)
	if !isBusy {
		return err
	}
	if _, unready := s.checkReady(ctx, a, time.Time{}); db.IsFull(unready) {
		return unready
	}
	if h, halted := s.Loop.Halted(busy.RunID); halted && !h.Works {
		return db.Busy("Another request in this conversation (%s) stopped because the database could not serve. It goes on "+
			"by itself: send this one again in a moment", busy.RunID)
	}
	return err
}

// runProblem returns the problem for an error of starting a run.
func runProblem(err error) error {
	busy, isBusy := errors.AsType[*loop.BusyError](err)
	pending, isPending := errors.AsType[*loop.PendingError](err)
	draft, isDraft := errors.AsType[*recall.DraftError](err)
	switch {
	case isBusy:
		return rest.Busy(busy.Error(), busy.RunID)
	case isPending:
		return rest.PendingApproval(pending.Error(), pending.MessageID)
	case isDraft && errors.Is(err, db.ErrInvalid):
		return rest.Unprocessable(fmt.Sprintf("body.messages[%d]", draft.At), draft.Err.Error())
	case errors.Is(err, loop.ErrNoModel):
		return rest.NoModel(loop.NoModelText(err))
	}
	return err
}
