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
	Repeated bool    `db:"-" json:"repeated"` // an earlier append stored this draft under the same otid

	// Orphans are call ids: the message has results for them, but the conversation has no such calls. Prompts leave these
	// results out; searches and lists include them.
	Orphans []string `db:"orphans" json:"orphan_tool_call_ids" doc:"Of results that no model sees, as they have no call."`
}

// RecordedPrompt is a prompt of a recording that a provider counted. Only its messages are known, not its system prompt
// and tools.
type RecordedPrompt struct {
	Answer int    // position of the message that answered it
	Tokens int    // that the provider counted
	Model  string // the provider's name of the model
}

// DraftError says what is wrong with one draft of an append. It wraps ErrInvalid or ErrConflict.
type DraftError struct {
	At  int // index of the draft, from 0
	Err error
}

func (e *DraftError) Error() string { return fmt.Sprintf("messages[%d]: %v", e.At, e.Err) }

func (e *DraftError) Unwrap() error { return e.Err }

// appending is an append in a transaction.
type appending struct {
	*Store
	org                   db.Org
	agentID, conversation string
	redactor              *redact.Redactor
	now                   time.Time       // the time of drafts that have none
	otids                 map[string]bool // otids of all drafts so far
	take                  []string        // otids that other messages lose
	end                   conversationEnd // end.Key is 0 until the first chunk locks the conversation
	chunk                 []entry
	bytes                 int // size of the chunk's texts
	out                   []Appended
	provenance            *db.Provenance
	unconfirmed           []told // stored messages that the drafts seem to repeat; nil once a draft repeats none
	restores              bool   // the entries have the seqs of events that are already stored
	secondResults         bool   // second results of calls are stored, too
	results               *int   // characters of the results in the log's last messages; nil until they were counted

	rest func(pgx.Tx, []Appended, Conversation) error // runs at the end of the transaction, if not nil
}

// told is a stored message that its sender may send again.
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
