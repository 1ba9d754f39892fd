// Package retention deletes what an organization keeps only for a time: stored prompts, long results outside the log,
// vectors of old messages, stored events of runs, records of runs and steps, and replays of the lab. The log itself is
// kept for good.
package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Store keeps the settings of organizations, and deletes old rows.
type Store struct {
	DB db.DB

	// Batch is how many rows one statement deletes (0 means 1,000), and Pause the wait between two statements.
	Batch int
	Pause time.Duration

	Now func() time.Time // nil: the system clock
}

// Ages say for how many days an organization keeps what it stores; 0 means for good.
type Ages struct {
	Prompts     int `json:"prompts_days" minimum:"0" maximum:"36500" doc:"Stored prompts; 30 by default, 0 for good."`
	PromptsKept int `json:"prompts_kept" minimum:"0" maximum:"1000000" doc:"The most of a conversation; 0 for all."`
	LongResults int `json:"long_results_days" minimum:"0" maximum:"36500" doc:"Long results of tools; 0 for good."`
	Vectors     int `json:"vectors_days" minimum:"0" maximum:"36500" doc:"Vectors of messages; 0 for good."`
	RunEvents   int `json:"run_events_hours" minimum:"0" maximum:"876000" doc:"Stored events of background runs; 3 hours."`
	Runs        int `json:"runs_days" minimum:"0" maximum:"36500" doc:"Records of runs and their steps; 0 for good."`
	Replays     int `json:"replays_days" minimum:"0" maximum:"36500" doc:"Replays of the lab; 30 by default, 0 for good."`
}

// Defaults returns the settings of an organization that has set none.
func Defaults() Ages {
	return Ages{Prompts: 30, PromptsKept: 1_000, RunEvents: 3, Replays: 30}
}

// Settings returns the settings of an organization.
func (s *Store) Settings(ctx context.Context, org db.Org) (Ages, error) {
	return read(db.One[json.RawMessage](ctx, s.DB, `SELECT retention FROM organizations WHERE org = $1`, org))
}

func read(raw json.RawMessage, err error) (Ages, error) {
	out := Defaults()
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// Update changes an organization's settings. Fields that change does not set stay. *db.FieldError if a number is out of
// range. change may be called twice.
func (s *Store) Update(ctx context.Context, org db.Org, change func(*Ages)) (updated Ages, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if updated, err = read(db.One[json.RawMessage](ctx, tx, `
			SELECT retention FROM organizations WHERE org = $1 FOR NO KEY UPDATE`, org)); err != nil {
			return err
		}
		change(&updated)
		if err := updated.Check(); err != nil {
			return err
		}
		raw, err := json.Marshal(updated)
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `UPDATE organizations SET retention = $2 WHERE org = $1`, org, raw)
	})
	return updated, err
}

// Check returns *db.FieldError if a number is out of range.
func (r Ages) Check() error {
	for _, f := range []struct {
		name    string
		n, most int
	}{{"prompts_days", r.Prompts, 36_500}, {"prompts_kept", r.PromptsKept, 1_000_000},
		{"long_results_days", r.LongResults, 36_500}, {"vectors_days", r.Vectors, 36_500},
		{"run_events_hours", r.RunEvents, 876_000}, {"runs_days", r.Runs, 36_500},
		{"replays_days", r.Replays, 36_500}} {
		if f.n < 0 || f.n > f.most {
			return &db.FieldError{Field: f.name,
				Rule: fmt.Sprintf("it is %d; it must be from 0, which keeps all, to %d", f.n, f.most)}
		}
	}
	return nil
}

// rule deletes up to $2 rows of an organization that are older than a time, or beyond a number.
type rule struct {
	table string
	limit any    // $3: a time or a number
	sql   string // $1 is the organization, $2 the number of rows
}

const day = 24 * time.Hour

// rules returns the deletions for the settings. The newest prompt of a conversation is always kept.
func (r Ages) rules(now time.Time) (rules []rule) {
	add := func(table string, n int, unit time.Duration, sql string) {
		if n > 0 {
			rules = append(rules, rule{table, now.Add(-time.Duration(n) * unit), sql})
		}
	}
	add("prompts", r.Prompts, day, `
		DELETE FROM prompts WHERE org = $1 AND key IN (
			SELECT p.key FROM prompts p
			WHERE p.org = $1 AND p.handed_out_at < $3 AND EXISTS (
				SELECT FROM prompts n WHERE n.org = $1 AND n.conversation_key = p.conversation_key AND n.key > p.key)
			LIMIT $2)`)
	add("clips", r.LongResults, day, `
		DELETE FROM clips WHERE org = $1 AND id IN (
			SELECT k.id FROM clips k
			JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.position
			WHERE k.org = $1 AND m.org = $1 AND m.created_at < $3
			LIMIT $2)`)
	add("clips", r.LongResults, day, `
		DELETE FROM clips WHERE org = $1 AND id IN (
			SELECT id FROM clips WHERE org = $1 AND position IS NULL AND created_at < $3
			LIMIT $2)`)
	add("message_vectors", r.Vectors, day, `
		DELETE FROM message_vectors WHERE org = $1 AND (message_key, space_id) IN (
			SELECT message_key, space_id FROM message_vectors WHERE org = $1 AND created_at < $3
			LIMIT $2)`)
	add("run_items", r.RunEvents, time.Hour, `
		DELETE FROM run_items WHERE org = $1 AND (run_key, seq) IN (
			SELECT i.run_key, i.seq FROM run_items i JOIN runs r ON r.org = i.org AND r.key = i.run_key
			WHERE i.org = $1 AND r.org = $1 AND r.completed_at < $3
			LIMIT $2)`)
	add("runs", r.Runs, day, `
		DELETE FROM runs WHERE org = $1 AND key IN (
			SELECT key FROM runs WHERE org = $1 AND completed_at < $3
			LIMIT $2)`)
	add("replays", r.Replays, day, `
		DELETE FROM replays WHERE org = $1 AND key IN (
			SELECT key FROM replays WHERE org = $1 AND created_at < $3
			LIMIT $2)`)
	if r.PromptsKept > 0 {
		rules = append(rules, rule{"prompts", r.PromptsKept, `
			DELETE FROM prompts WHERE org = $1 AND key IN (
				SELECT key FROM (
					SELECT key, row_number() OVER (PARTITION BY conversation_key ORDER BY key DESC) AS place FROM prompts
					WHERE org = $1
				) p
				WHERE place > $3
				LIMIT $2)`})
	}
	return rules
}

// Sweep deletes old rows of every organization in small batches. It maps table → number of deleted rows.
func (s *Store) Sweep(ctx context.Context) (map[string]int, error) {
	deleted := map[string]int{}
	orgs, err := db.Orgs(ctx, s.DB)
	for _, org := range orgs {
		if err = errors.Join(err, s.SweepOrg(db.WithOrg(ctx, org), org, deleted)); ctx.Err() != nil {
			break
		}
	}
	return deleted, err
}

// SweepOrg is Sweep for one organization. It adds the numbers of rows to deleted.
func (s *Store) SweepOrg(ctx context.Context, org db.Org, deleted map[string]int) error {
	settings, err := s.Settings(ctx, org)
	if err != nil {
		return err
	}
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	for _, r := range settings.rules(now) {
		n, err := s.batches(ctx, r.sql, org, r.limit)
		if deleted[r.table] += n; err != nil {
			return fmt.Errorf("delete old rows of %s: %w", r.table, err)
		}
	}
	return s.unusedParts(ctx, org, now.Add(-unusedFor), deleted)
}

// unusedFor is how long a piece of prompts is kept after no prompt has it, because a new prompt may be about to use it.
const unusedFor = 2 * time.Hour

// unusedParts deletes the pieces that are in no stored prompt and that no prompt has used since before.
func (s *Store) unusedParts(ctx context.Context, org db.Org, before time.Time, deleted map[string]int) error {
	agents, err := db.All[int64](ctx, s.DB, `
		SELECT DISTINCT agent_key FROM prompt_parts WHERE org = $1 AND used_at < $2 ORDER BY agent_key`, org, before)
	for _, agent := range agents {
		if err != nil {
			break
		}
		var n int
		n, err = s.batches(ctx, `
			DELETE FROM prompt_parts WHERE org = $1 AND agent_key = $3 AND used_at < $4 AND sha256 IN (
				SELECT sha256 FROM prompt_parts
				WHERE org = $1 AND agent_key = $3 AND used_at < $4 AND sha256 NOT IN (
					SELECT unnest(parts) FROM prompts WHERE org = $1 AND agent_key = $3)
				LIMIT $2)`, org, agent, before)
		deleted["prompt_parts"] += n
	}
	return err
}

// batches repeats a statement that deletes at most $2 rows until it deletes fewer.
func (s *Store) batches(ctx context.Context, sql string, org db.Org, args ...any) (deleted int, err error) {
	batch := s.Batch
	if batch == 0 {
		batch = 1_000
	}
	for {
		tag, err := s.DB.Exec(ctx, sql, append([]any{org, batch}, args...)...)
		if deleted += int(tag.RowsAffected()); err != nil || int(tag.RowsAffected()) < batch {
			return deleted, db.Error(err)
		}
		select {
		case <-ctx.Done():
			return deleted, ctx.Err()
		case <-time.After(s.Pause):
		}
	}
}
