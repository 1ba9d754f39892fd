// Package erase takes a text, or a message, out of all that an organization stores: out of the log and what was made of
// it, files, passages, blocks, memory files, working memory, stored prompts, runs and jobs, in present and former
// versions. With the redaction of secrets it is the only exception to a log that loses nothing.
package erase

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// Store keeps erasures in Postgres, and works on them.
type Store struct {
	DB         db.DB
	Recall     *recall.Store
	Files      *files.Store
	Archival   *archival.Store
	Compaction *compaction.Store

	MemoryFiles *memoryfile.Store

	// Owner is a pool of the role that owns the tables, which writes them anew after an erasure; nil leaves old rows in
	// their files, and the report says so.
	Owner *pgxpool.Pool

	// InBackground says that a loop works on erasures: see Run. Else a request works on its own.
	InBackground bool
}

// With returns a store that works in tx; it only records requests.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx), InBackground: true}
}

// The states of erasures.
const (
	Pending    = "pending"    // an operator has to approve or deny it
	Running    = "running"    // it is being worked on, again after a crash
	Completed  = "completed"  // the last look found nothing
	Incomplete = "incomplete" // the report names what is left
	Denied     = "denied"
)

// Requester is who asks for an erasure, or decides on it. Empty fields are unknown.
type Requester struct {
	Agent        string `json:"agent_id,omitempty" doc:"Whose tool asks."`
	Conversation string `json:"conversation_id,omitempty" doc:"In which it asks."`
	Key          string `json:"key_id,omitempty" doc:"Of the API key of the request."`
}

// Request says what to erase: texts with all spellings that are meant, or one message.
type Request struct {
	Texts      []string
	MessageID  string
	WholeWords bool // an occurrence begins and ends with a word
	Reason     string
	By         Requester
}

// Erasure is a request to erase, and what became of it.
type Erasure struct {
	Key         int64      `db:"key" json:"-"`
	EndsAs      *string    `db:"ends_as" json:"-"` // set once everything is erased
	ID          string     `db:"id" json:"id"`
	Status      string     `db:"status" json:"status" enum:"pending,running,completed,incomplete,denied" doc:"Its state."`
	Texts       []string   `db:"texts" json:"texts" doc:"Null once all of them are erased, or it was denied."`
	MessageID   *string    `db:"message_id" json:"message_id" doc:"Of the message to erase."`
	WholeWords  bool       `db:"whole_words" json:"whole_words" doc:"An occurrence begins and ends with a word."`
	Reason      *string    `db:"reason" json:"reason" doc:"As the request gives it."`
	RequestedBy Requester  `db:"requested_by" json:"requested_by" doc:"Who asks."`
	DecidedBy   *Requester `db:"decided_by" json:"decided_by" doc:"Who approved or denied it."`
	Report      Report     `db:"report" json:"report" doc:"What was changed."`
	CreatedAt   time.Time  `db:"created_at" json:"created_at"`
	EndedAt     *time.Time `db:"ended_at" json:"ended_at"`
}

// Report says what an erasure changed, or what a dry one would change.
type Report struct {
	Found     map[string]int `json:"found" doc:"Occurrences by table."`
	Left      map[string]int `json:"left" doc:"Occurrences that cannot be erased, by table and column."`
	Unread    int            `json:"unread_files" doc:"Files without a text, such as scans: look at them yourself."`
	UnreadIDs []string       `json:"unread_file_ids" doc:"The first 100 of them."`
	Converted []string       `json:"converted_file_ids" doc:"Files whose originals were deleted: they keep their text."`
	AtWork    map[string]int `json:"at_work" doc:"What may write the texts again, or stopped_servers: others go on."`
	Summaries int            `json:"remade_summaries" doc:"Summaries that were made again."`
	Prompts   int            `json:"deleted_prompts" doc:"Stored prompts that were deleted."`
	Places    []ErasedRow    `json:"places" doc:"The first 200 rows outside of messages, files, passages and prompts."`
	Remains   []string       `json:"remains" doc:"What the erasure does not reach, and until when."`
	Passes    int            `json:"passes" doc:"How often everything was searched; the last time found nothing."`
}

// UnmarshalJSON implements json.Unmarshaler. No map or list is null.
func (r *Report) UnmarshalJSON(raw []byte) error {
	type fields Report
	f := fields(newReport())
	err := json.Unmarshal(raw, &f)
	*r = Report(f)
	return err
}

func newReport() Report {
	return Report{Found: map[string]int{}, Left: map[string]int{}, UnreadIDs: []string{}, Converted: []string{},
		AtWork: map[string]int{}, Places: []ErasedRow{}, Remains: []string{}}
}

// The report names a server that has stopped and not been replaced yet.
const columns = `key, ends_as, id, status, texts, message_id, whole_words, reason, requested_by, decided_by,
	CASE WHEN status = 'running' AND claimed_at < now() - interval '10 seconds'
	          AND coalesce(report ->> 'at_work', '{}') = '{}'
	     THEN jsonb_set(report, '{at_work}', '{"stopped_servers": 1}') ELSE report END AS report,
	created_at, ended_at`

// check returns ErrInvalid unless a request names texts or a message that can be erased.
func (s *Store) check(ctx context.Context, org db.Org, r *Request) error {
	if (len(r.Texts) > 0) == (r.MessageID != "") {
		return db.Invalid("give either texts or message_id")
	}
	if r.MessageID != "" {
		if r.WholeWords {
			return db.Invalid("whole_words is for texts; leave it out with message_id")
		}
		_, err := s.messageKey(ctx, org, r.MessageID)
		r.MessageID = "message-" + db.UUID("message-", r.MessageID).String() // as events of runs have it
		return err
	}
	for i, t := range r.Texts {
		r.Texts[i] = strings.TrimSpace(db.Clean(t))
	}
	_, err := newMatcher(r.Texts, r.WholeWords)
	return err
}

func (s *Store) messageKey(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.DB, `SELECT key FROM messages WHERE org = $1 AND id = $2`, org,
		db.UUID("message-", id))
	return key, db.OrNotFound(err, "Message with ID %s not found", db.Short(id))
}

// Create records a request. One of an operator is worked on at once, one of an agent waits for approval. ErrInvalid if
// a text is too short, ErrNotFound if the message does not exist.
func (s *Store) Create(ctx context.Context, org db.Org, r Request) (Erasure, error) {
	if err := s.check(ctx, org, &r); err != nil {
		return Erasure{}, err
	}
	status := Running
	if r.By.Agent != "" {
		status = Pending
	}
	args := pgx.StrictNamedArgs{"org": org, "status": status, "texts": r.Texts, "message": nil, "whole": r.WholeWords,
		"reason": nil, "by": r.By}
	if r.MessageID != "" {
		args["message"] = r.MessageID
	}
	if reason := strings.TrimSpace(db.Clean(r.Reason)); reason != "" {
		args["reason"] = db.Beginning(reason, 2_000)
	}
	e, err := db.One[Erasure](ctx, s.DB, `
		INSERT INTO erasures (org, status, texts, message_id, whole_words, reason, requested_by, report, began_at)
		VALUES (@org, @status, @texts, @message, @whole, @reason, @by, '{}',
		        CASE WHEN @status = 'running' THEN now() END)
		RETURNING `+columns, args)
	if err != nil || status == Pending {
		return e, err
	}
	return s.begin(ctx, org, e)
}

// begin works on an erasure, unless a loop does.
func (s *Store) begin(ctx context.Context, org db.Org, e Erasure) (Erasure, error) {
	if s.InBackground {
		return e, nil
	}
	for {
		e, err := s.Erasure(ctx, org, e.ID)
		if err != nil || e.Status != Running {
			return e, err
		}
		if err := s.work(ctx, org, e); errors.Is(err, errAtWork) {
			select {
			case <-time.After(lookAgain / 40):
			case <-ctx.Done():
				return e, ctx.Err()
			}
		} else if err != nil {
			return e, err
		}
	}
}

// Preview reports what a request would change, and changes nothing. After an erasure it is the check that nothing is
// left.
func (s *Store) Preview(ctx context.Context, org db.Org, r Request) (Report, error) {
	if err := s.check(ctx, org, &r); err != nil {
		return Report{}, err
	}
	e := Erasure{Texts: r.Texts, WholeWords: r.WholeWords}
	if r.MessageID != "" {
		e.MessageID = &r.MessageID
	}
	w, err := s.sweep(org, e)
	if err != nil {
		return Report{}, err
	}
	w.dry = true
	if r.MessageID != "" {
		if err := w.message(ctx, r.MessageID); err != nil || w.erased {
			return w.report, err
		}
		if err := w.countDerived(ctx); err != nil {
			return w.report, err
		}
	}
	if w.m != nil {
		_, err = w.pass(ctx)
	}
	return w.report, err
}

// Erasure returns an erasure by its id.
func (s *Store) Erasure(ctx context.Context, org db.Org, id string) (Erasure, error) {
	e, err := db.One[Erasure](ctx, s.DB, `SELECT `+columns+` FROM erasures WHERE org = $1 AND id = $2`, org, id)
	return e, db.OrNotFound(err, "Erasure with ID %s not found", db.Short(id))
}

// List lists erasures.
func (s *Store) List(ctx context.Context, org db.Org, p db.Page) ([]Erasure, error) {
	return db.List[Erasure](ctx, s.DB, p, `SELECT `+columns+` FROM erasures WHERE org = @org`,
		pgx.StrictNamedArgs{"org": org})
}

// Decide approves or denies an erasure that an agent asked for. ErrConflict if it does not wait any more.
func (s *Store) Decide(ctx context.Context, org db.Org, id string, approve bool, by Requester) (Erasure, error) {
	status := Denied
	if approve {
		status = Running
	}
	e, err := db.One[Erasure](ctx, s.DB, `
		UPDATE erasures
		SET status = @status, decided_by = @by, texts = CASE WHEN @approve THEN texts END,
		    ended_at = CASE WHEN NOT @approve THEN now() END, began_at = CASE WHEN @approve THEN now() END
		WHERE org = @org AND id = @id AND status = 'pending'
		RETURNING `+columns,
		pgx.StrictNamedArgs{"org": org, "id": id, "status": status, "by": by, "approve": approve})
	if errors.Is(err, db.ErrNotFound) {
		if e, err = s.Erasure(ctx, org, id); err == nil {
			err = db.Conflict("erasure %s does not wait for a decision: it is %s", id, e.Status)
		}
	}
	if err != nil || !approve {
		return e, err
	}
	return s.begin(ctx, org, e)
}

// maxPasses bounds how often everything is searched while others keep writing what is erased.
const maxPasses = 6

// work erases until a pass over everything finds nothing, and stores the report.
func (s *Store) work(ctx context.Context, org db.Org, e Erasure) error {
	if e.EndsAs != nil {
		return (&sweep{Store: s, org: org, e: e, report: e.Report}).end(ctx)
	}
	w, err := s.sweep(org, e)
	if err != nil {
		return err
	}
	if e.MessageID != nil {
		if err := w.message(ctx, *e.MessageID); err != nil {
			return err
		}
	}
	clean := w.m == nil
	began := time.Now()
	for ; !clean && w.report.Passes < maxPasses; w.report.Passes++ {
		if began, err = db.One[time.Time](ctx, w.DB, `SELECT clock_timestamp()`); err != nil {
			return err
		}
		found, err := w.pass(ctx)
		if err != nil {
			return err
		}
		clean = found == 0
	}
	if err := w.derived(ctx); err != nil {
		return err
	}
	if clean, err = w.settled(ctx, clean, began); err != nil {
		return errors.Join(err, w.keepReport(ctx))
	}
	if len(e.Report.AtWork) > 0 {
		if err := w.derivedAgain(ctx); err != nil {
			return err
		}
	}
	if err := w.forget(ctx, clean); err != nil {
		return err
	}
	return w.end(ctx)
}

// keepReport stores what was changed so far, for the one who goes on.
func (w *sweep) keepReport(ctx context.Context) error {
	return db.Exec(ctx, w.DB, `UPDATE erasures SET report = $3 WHERE org = $1 AND key = $2`, w.org, w.e.Key, w.report)
}

// forget stores the report of an erasure and how it ends, and forgets what it erased.
func (w *sweep) forget(ctx context.Context, clean bool) error {
	status := Completed
	if !clean || len(w.report.Left) > 0 {
		status = Incomplete
	}
	report, err := json.Marshal(w.report)
	if err != nil {
		return err
	}
	text := string(report)
	if w.m != nil {
		text = w.m.eraseJSON(text, ownNames).text
	}
	var reason *string
	if w.e.Reason != nil {
		after := *w.e.Reason
		if w.m != nil {
			after, _ = w.m.erase(after)
		}
		reason = &after
	}
	return db.Exec(ctx, w.DB, `
		UPDATE erasures SET ends_as = $3, texts = NULL, reason = $4, report = $5 WHERE org = $1 AND key = $2`,
		w.org, w.e.Key, status, reason, text)
}

// end writes the tables anew, which have no row with the texts any more, and ends the erasure with what remains.
func (w *sweep) end(ctx context.Context) error {
	return db.Exec(ctx, w.DB, `
		UPDATE erasures
		SET status = ends_as, report = jsonb_set(report, '{remains}', to_jsonb($3::text[])), ended_at = now()
		WHERE org = $1 AND key = $2`, w.org, w.e.Key, w.remains(ctx))
}
