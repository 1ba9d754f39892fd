// Package erase removes a text, or a message, from everything that an organization stores: the log and whatever was
// made from it, files, passages, blocks, memory files, working memory, stored prompts, runs and jobs, in present and
// former versions. Apart from the redaction of secrets, it is the only way to lose text from the log.
//
// Each file uses only the files named before it:
//   - requests of erasures and their reports: erase.go
//   - occurrences of a text, also in other writings: escapes.go match.go markup.go json.go
//   - a pass over an organization, and what it erases: sweep.go derived.go prompts.go runitems.go messagelog.go
//     files.go passages.go requests.go rewrite.go
//   - tables that have no code of their own here: ownwords.go table.go places.go tablesweep.go remains.go
//   - the work of an erasure: atwork.go wholemessage.go work.go claim.go decide.go user.go
package erase

import (
	"context"
	"encoding/json"
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
	Compaction *compaction.Compactor

	MemoryFiles *memoryfile.Store

	// Owner is a pool of the role that owns the tables. With it, an erasure rewrites the tables at the end. If it is nil,
	// old rows stay in Postgres' files, and the report says so.
	Owner *pgxpool.Pool

	// InBackground says that a loop calls Run. Otherwise a request does the work itself.
	InBackground bool
}

// With returns a store that works in tx. It can only record requests.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx), InBackground: true}
}

// The states of erasures.
const (
	Pending    = "pending"    // an operator has to approve or deny it
	Running    = "running"    // in progress, also after a restart of the server
	Completed  = "completed"  // the last search found nothing
	Incomplete = "incomplete" // something is left; the report names it
	Denied     = "denied"
)

// Requester asks for an erasure, or decides on it. An empty field is unknown.
type Requester struct {
	Agent        string `json:"agent_id,omitempty" doc:"Whose tool asks."`
	Conversation string `json:"conversation_id,omitempty" doc:"In which it asks."`
	Key          string `json:"key_id,omitempty" doc:"Of the API key of the request."`
}

// Request says what to erase: texts, in each spelling that is meant, or one message.
type Request struct {
	Texts      []string
	MessageID  string
	User       string // id of the identity whose memory is erased, in place of texts and a message
	WholeWords bool   // an occurrence must begin and end at the bounds of a word
	Reason     string
	By         Requester
}

// Erasure is a request to erase, and its outcome.
type Erasure struct {
	Key         int64      `db:"key" json:"-"`
	EndsAs      *string    `db:"ends_as" json:"-"` // final status, set once everything is erased
	ID          string     `db:"id" json:"id"`
	Status      string     `db:"status" json:"status" enum:"pending,running,completed,incomplete,denied" doc:"Its state."`
	Texts       []string   `db:"texts" json:"texts" doc:"Null once all of them are erased, or it was denied."`
	MessageID   *string    `db:"message_id" json:"message_id" doc:"Of the message to erase."`
	UserID      *string    `db:"user_id" json:"user_id" doc:"The identity whose own memory is erased."`
	WholeWords  bool       `db:"whole_words" json:"whole_words" doc:"An occurrence begins and ends with a word."`
	Reason      *string    `db:"reason" json:"reason" doc:"As the request gives it."`
	RequestedBy Requester  `db:"requested_by" json:"requested_by" doc:"Who asks."`
	DecidedBy   *Requester `db:"decided_by" json:"decided_by" doc:"Who approved or denied it."`
	Report      Report     `db:"report" json:"report" doc:"What was changed."`
	CreatedAt   time.Time  `db:"created_at" json:"created_at"`
	EndedAt     *time.Time `db:"ended_at" json:"ended_at"`
}

// Report says what an erasure changed, or what Preview would change.
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

// UnmarshalJSON implements json.Unmarshaler. Absent maps and lists become empty, not nil.
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

// columns are the columns of an Erasure. If the erasure's server has stopped and no other has taken over, the report
// says so.
const columns = `key, ends_as, id, status, texts, message_id, user_id, whole_words, reason, requested_by, decided_by,
	CASE WHEN status = 'running' AND claimed_at < now() - interval '10 seconds'
	          AND coalesce(report ->> 'at_work', '{}') = '{}'
	     THEN jsonb_set(report, '{at_work}', '{"stopped_servers": 1}') ELSE report END AS report,
	created_at, ended_at`

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
