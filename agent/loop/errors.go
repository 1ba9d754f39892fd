package loop

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// BusyError means that another run works in the conversation. It is an ErrConflict.
type BusyError struct{ RunID string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("CONFLICT: Another request is at work in this conversation (%s). Wait for its end, or cancel it",
		cmp.Or(e.RunID, "it has just ended"))
}

func (*BusyError) Unwrap() error { return db.ErrConflict }

// PendingError means that calls wait for the client's approval or results. It is an ErrConflict. Clients of Letta look
// for its words.
type PendingError struct{ MessageID string }

func (*PendingError) Error() string {
	return "Cannot send a new message: The agent is waiting for approval on a tool call. Please approve or deny the " +
		"pending request before continuing, or send the call's result"
}

func (*PendingError) Unwrap() error { return db.ErrConflict }

func ignoreNotFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

// errCancelled means that a run was cancelled, or that its agent, conversation or organization is gone.
var errCancelled = errors.New("the run was cancelled")

// errTaken means that another server works on a run, or has ended it.
var errTaken = errors.New("another server has taken the run over")
