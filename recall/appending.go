package recall

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// Appended is the place of a draft in the log.
type Appended struct {
	ID       string  `db:"id" json:"id"`
	Seq      int64   `db:"seq" json:"seq"`
	Position int     `db:"position" json:"position"`
	Tokens   int     `db:"tokens" json:"tokens"`
	OTID     *string `db:"otid" json:"otid"`
	Repeated bool    `db:"-" json:"repeated"` // an earlier append stored it under the same otid

	// Orphans are the ids of calls that the message has results of and that the conversation lacks. Prompts leave such
	// results out; searches and lists include them.
	Orphans []string `db:"orphans" json:"orphan_tool_call_ids" doc:"Of results that no model sees, as they have no call."`
}

// DraftError says what is wrong with one of the drafts of a call. It wraps ErrInvalid or ErrConflict.
type DraftError struct {
	At  int // index of the draft, from 0
	Err error
}

// Error implements error.
func (e *DraftError) Error() string { return fmt.Sprintf("messages[%d]: %v", e.At, e.Err) }

// Unwrap returns what is wrong.
func (e *DraftError) Unwrap() error { return e.Err }

// appending is an append in a transaction.
type appending struct {
	*Store
	org                   db.Org
	agentID, conversation string
	redactor              *redact.Redactor
	now                   time.Time       // when drafts without a time were said
	otids                 map[string]bool // of all drafts so far
	end                   conversationEnd // its key is 0 until the first chunk locks it
	chunk                 []entry
	bytes                 int // of the chunk's texts
	out                   []Appended
	provenance            *db.Provenance
	untold                []told // whose sender sends them again, as far as the drafts so far are these
	restores              bool   // the entries have the seqs of events that are stored already
	secondResults         bool   // results of calls that have one are stored

	rest func(pgx.Tx, []Appended, Conversation) error // ends the transaction, if not nil
}

// told is a stored message whose sender may send it again.
type told struct {
	ID       string  `db:"id"`
	Seq      int64   `db:"seq"`
	Position int     `db:"position"`
	Tokens   int     `db:"tokens"`
	OTID     *string `db:"otid"`
	Role     Role    `db:"role"`
	Name     *string `db:"name"`
	Sender   *string `db:"sender_id"`
	Content  []Part  `db:"content"`
}

func orphansOf(parts []Part) []string {
	orphans := []string{}
	for _, p := range parts {
		if p.Orphan {
			orphans = append(orphans, p.CallID)
		}
	}
	return orphans
}
