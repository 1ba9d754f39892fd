// Package replay replays recorded sessions under policies. Jobs do the work in slices, and each slice commits its
// state, so that a replay continues after its server was killed.
//
// Its files, in order: replay.go checks and creates a replay; store.go stores, lists and deletes replays; job.go
// replays one slice after the other.
package replay

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Store makes replays. All fields except Slice must be set before Create. Models may return no model.
type Store struct {
	DB     db.DB
	Recall *recall.Store
	Models func(context.Context, string) *summary.Model
	Jobs   func() *river.Client[pgx.Tx] // nil, or returns nil: no server works on replays
	Slice  time.Duration                // how long a slice works before it commits; 0 means 10 seconds
}

// The states of a replay.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// Limits of an organization's replays.
const (
	MaxKept     = 100
	MaxRunning  = 5
	MaxSessions = 100
	MaxParts    = 1_000      // sessions times policies and windows
	MaxMessages = 50_000     // of all sessions together
	MaxSteps    = 10_000_000 // messages × policies × windows
)

// Replay is a replay of sessions.
type Replay struct {
	ID        string     `db:"id" json:"id"`
	Status    string     `db:"status" json:"status" enum:"running,done,failed" doc:"What it does."`
	Why       *string    `db:"why" json:"why" doc:"Why it failed; null if it did not."`
	Model     *string    `db:"model" json:"model" doc:"That writes summaries; null: rules write them."`
	Steps     int        `db:"steps" json:"steps" doc:"Messages to replay, under all policies."`
	StepsDone int        `db:"steps_done" json:"steps_done"`
	Parts     int        `db:"parts" json:"parts" doc:"Replays of a session under a policy in a window."`
	PartsDone int        `db:"parts_done" json:"parts_done"`
	CreatedAt time.Time  `db:"created_at" json:"created_at"`
	EndedAt   *time.Time `db:"ended_at" json:"ended_at" doc:"Null while it runs."`
}

// Request says what to replay.
type Request struct {
	Sessions []transcript.Transcript
	Policies []json.RawMessage // empty: all presets
	Windows  []int             // tokens
	Ratios   []float64         // more replays, besides Windows
	Prices   policy.CachePrices
	Model    string // empty: no model
}

// settings are a part's settings as stored.
type settings struct {
	Name   string          `db:"name" json:"name"`
	Policy json.RawMessage `db:"policy" json:"policy,omitempty"`
	Window int             `db:"-" json:"window_tokens,omitempty"`
	Ratio  float64         `db:"-" json:"ratio,omitempty"`
}

// Create stores a replay and queues its job. ErrInvalid, with the reason, if a value is not valid; ErrConflict if the
// organization has too many replays.
func (s *Store) Create(ctx context.Context, org db.Org, r Request) (Replay, error) {
	if r.Model != "" && (s.Models == nil || s.Models(ctx, r.Model) == nil) {
		return Replay{}, db.Invalid("There is no model %q: the server has no endpoint for models. Leave model out",
			db.Short(r.Model))
	}
	each, err := r.settings()
	if err != nil {
		return Replay{}, err
	}
	steps, err := r.check(len(each))
	if err != nil {
		return Replay{}, err
	}
	for i := range r.Sessions {
		if err := s.clean(ctx, org, &r.Sessions[i]); err != nil {
			return Replay{}, err
		}
	}
	var id string
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := s.room(ctx, tx, org); err != nil {
			return err
		}
		var key int64
		id, key, err = insert(ctx, tx, org, r, steps*len(each))
		if err != nil {
			return err
		}
		for i, session := range r.Sessions {
			if err := insertSession(ctx, tx, part{org, key, i + 1}, session, each); err != nil {
				return err
			}
		}
		return s.queue(ctx, tx, args{Org: org, ID: id})
	})
	if err != nil {
		return Replay{}, err
	}
	return s.Replay(ctx, org, id)
}

// check checks the sizes of a request, and returns the number of its messages.
func (r Request) check(each int) (messages int, err error) {
	if len(r.Sessions) == 0 {
		return 0, db.Invalid("There is nothing to replay: give transcripts, or a conversation_id")
	}
	for _, t := range r.Sessions {
		messages += len(t.Drafts)
	}
	switch {
	case len(r.Sessions) > MaxSessions:
		return 0, db.Invalid("There are %d sessions; a replay may have at most %d", len(r.Sessions), MaxSessions)
	case each*len(r.Sessions) > MaxParts:
		return 0, db.Invalid("%d sessions under %d policies and windows are too many; their product may be at most %d",
			len(r.Sessions), each, MaxParts)
	case messages > MaxMessages:
		return 0, db.Invalid("The sessions have %d messages; they may have at most %d together", messages, MaxMessages)
	case messages*each > MaxSteps:
		return 0, db.Invalid("%d messages under %d policies and windows are too many; their product may be at most %d",
			messages, each, MaxSteps)
	}
	return messages, nil
}

// settings returns the settings for the replays of each session.
func (r Request) settings() (all []settings, err error) {
	policies, err := lab.Policies(r.Policies)
	if err != nil {
		return nil, err
	}
	for _, window := range lab.Distinct(r.Windows) {
		for _, p := range policies {
			all = append(all, settings{Name: p.Name, Policy: p.Asked, Window: window})
		}
	}
	for _, ratio := range lab.Distinct(r.Ratios) {
		all = append(all, settings{Ratio: ratio})
	}
	if len(all) == 0 {
		return nil, db.Invalid("There is nothing to replay under: give windows, or ratios")
	}
	return all, nil
}

// under returns a part's settings in the lab's form.
func (of settings) under(s *lab.Session, prices policy.CachePrices) (lab.Settings, error) {
	if of.Ratio > 0 {
		return lab.AtRatio(s, of.Ratio, prices)
	}
	p, err := policy.Parse(of.Policy)
	return lab.Settings{Name: of.Name, Policy: p, Window: of.Window, Prices: prices}, err
}

// clean redacts and cleans a transcript.
func (s *Store) clean(ctx context.Context, org db.Org, t *transcript.Transcript) (err error) {
	system := recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: t.System}}}
	cleaned, err := s.Recall.Redacted(ctx, org, append([]recall.Draft{system}, t.Drafts...))
	if err != nil {
		return err
	}
	t.Name, t.Session, t.System, t.Drafts = db.Clean(t.Name), db.Clean(t.Session), cleaned[0].Content[0].Text, cleaned[1:]
	for i := range t.Prompts {
		t.Prompts[i].Model = db.Clean(t.Prompts[i].Model)
	}
	left := map[string]int{}
	for kind, n := range t.LeftOut {
		left[db.Short(db.Clean(kind))] += n
	}
	t.LeftOut = left
	for i := range t.Evidence {
		q := &t.Evidence[i]
		q.Text, q.Answer = "", "" // only the ids are needed
		for n := range q.Evidence {
			q.Evidence[n] = db.Clean(q.Evidence[n])
		}
	}
	return nil
}
