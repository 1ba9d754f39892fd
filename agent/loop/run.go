package loop

import (
	"context"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
)

// Run is the work on one request.
type Run struct {
	Key          int64      `db:"key"`
	ID           string     `db:"id"`
	AgentID      string     `db:"agent_id"`
	AgentKey     int64      `db:"agent_key"`
	Conversation string     `db:"conversation"` // the conversation's id
	IsDefault    bool       `db:"is_default"`   // the conversation is the agent's default one
	Status       string     `db:"status"`
	StopReason   *string    `db:"stop_reason"`
	ErrorType    *string    `db:"error_type"`
	Error        *string    `db:"error"`
	ErrorStatus  *int       `db:"error_status"`
	ErrorDetail  *string    `db:"error_detail"`
	Background   bool       `db:"background"`
	Options      Options    `db:"request"`
	FirstTokenAt *time.Time `db:"first_token_at"`
	CancelledAt  *time.Time `db:"cancelled_at"`
	CreatedAt    time.Time  `db:"created_at"`
	CompletedAt  *time.Time `db:"completed_at"`
}

const runColumns = `r.key, r.id, a.id AS agent_id, r.agent_key, c.id AS conversation, c.is_default, r.status,
	r.stop_reason, r.error_type, r.error, r.error_status, r.error_detail, r.background, r.request, r.first_token_at,
	r.cancelled_at, r.created_at, r.completed_at`

const runRows = `SELECT ` + runColumns + `
	FROM runs r
	JOIN agents a ON a.org = r.org AND a.key = r.agent_key
	JOIN conversations c ON c.org = r.org AND c.key = r.conversation_key
	WHERE r.org = @org`

// setOptions stores a run's options.
func setOptions(ctx context.Context, d db.DB, org db.Org, r Run) error {
	return db.Exec(ctx, d, `UPDATE runs SET request = $3 WHERE org = $1 AND id = $2`, org, r.ID, r.Options)
}

// Failure returns why the run failed; nil if it did not.
func (r Run) Failure() *Failure {
	if r.ErrorType == nil {
		return nil
	}
	f := Failure{Type: *r.ErrorType, Text: *r.Error}
	if r.ErrorStatus != nil {
		f.Status = *r.ErrorStatus
	}
	if r.ErrorDetail != nil {
		f.Detail = *r.ErrorDetail
	}
	return &f
}

// messageRuns returns the runs that have the messages of this run's request.
func (r Run) messageRuns() []string { return append(slices.Clone(r.Options.Follows), firstOf(r)) }

// firstOf returns the first run of a run's request.
func firstOf(r Run) string {
	if r.Options.Resumes != "" {
		return r.Options.Resumes
	}
	return r.ID
}
