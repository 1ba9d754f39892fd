package replay

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/db"
)

// part identifies a row of a replay.
type part struct {
	org    db.Org
	replay int64
	number int
}

// room returns ErrConflict if the organization cannot have another replay. It holds a lock, so that no other request
// finds the same room.
func (s *Store) room(ctx context.Context, tx pgx.Tx, org db.Org) error {
	if err := db.Exec(ctx, tx, `SELECT FROM organizations WHERE org = $1 FOR UPDATE`, org); err != nil {
		return err
	}
	type counts struct {
		All     int `db:"all"`
		Running int `db:"running"`
	}
	n, err := db.One[counts](ctx, tx, `
		SELECT count(*) AS all, count(*) FILTER (WHERE status = 'running') AS running FROM replays WHERE org = $1`, org)
	switch {
	case err != nil:
		return err
	case n.All >= MaxKept:
		return db.Conflict("There are %d replays, and no more are kept: delete one first", n.All)
	case n.Running >= MaxRunning:
		return db.Conflict("%d replays run, and no more run at a time: wait for one, or delete it", n.Running)
	}
	return nil
}

// insert stores a replay without its sessions.
func insert(ctx context.Context, tx pgx.Tx, org db.Org, r Request, steps int) (id string, key int64, err error) {
	type row struct {
		ID  string `db:"id"`
		Key int64  `db:"key"`
	}
	prices, err := json.Marshal(r.Prices)
	if err != nil {
		return "", 0, err
	}
	created, err := db.One[row](ctx, tx, `
		INSERT INTO replays (org, prices, model, steps) VALUES (@org, @prices, nullif(@model, ''), @steps)
		RETURNING id, key`, pgx.StrictNamedArgs{"org": org, "prices": json.RawMessage(prices), "model": r.Model,
		"steps": steps})
	return created.ID, created.Key, err
}

// insertSession stores a session of a replay, and its parts.
func insertSession(ctx context.Context, tx pgx.Tx, numbered part, t transcript.Transcript, each []settings) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := db.Exec(ctx, tx, `
		INSERT INTO replay_sessions (org, replay_key, number, transcript) VALUES (@org, @replay, @number, @transcript)`,
		pgx.StrictNamedArgs{"org": numbered.org, "replay": numbered.replay, "number": numbered.number,
			"transcript": json.RawMessage(raw)}); err != nil {
		return err
	}
	for i, under := range each {
		raw, err := json.Marshal(under)
		if err != nil {
			return err
		}
		if err := db.Exec(ctx, tx, `
			INSERT INTO replay_parts (org, replay_key, number, session, settings)
			VALUES (@org, @replay, @number, @session, @settings)`,
			pgx.StrictNamedArgs{"org": numbered.org, "replay": numbered.replay, "number": (numbered.number-1)*len(each) + i + 1,
				"session": numbered.number, "settings": json.RawMessage(raw)}); err != nil {
			return err
		}
	}
	return nil
}

const columns = `
	SELECT r.id, r.status, r.why, r.model, r.steps, r.steps_done, r.created_at, r.ended_at,
	       (SELECT count(*) FROM replay_parts p WHERE p.org = $1 AND p.replay_key = r.key) AS parts,
	       (SELECT count(*) FROM replay_parts p WHERE p.org = $1 AND p.replay_key = r.key AND p.result IS NOT NULL)
	           AS parts_done
	FROM replays r `

// Replay returns a replay. ErrNotFound if it does not exist.
func (s *Store) Replay(ctx context.Context, org db.Org, id string) (Replay, error) {
	r, err := db.One[Replay](ctx, s.DB, columns+`WHERE r.org = $1 AND r.id = $2`, org, id)
	return r, db.OrNotFound(err, "Replay with ID %s not found", id)
}

// Replays lists the replays of an organization, the newest first.
func (s *Store) Replays(ctx context.Context, org db.Org, limit int) ([]Replay, error) {
	return db.All[Replay](ctx, s.DB, columns+`WHERE r.org = $1 ORDER BY r.key DESC LIMIT $2`, org, limit)
}

// Delete deletes a replay, even if it is running. ErrNotFound if it does not exist.
func (s *Store) Delete(ctx context.Context, org db.Org, id string) error {
	tag, err := s.DB.Exec(ctx, `DELETE FROM replays WHERE org = $1 AND id = $2`, org, id)
	if err == nil && tag.RowsAffected() == 0 {
		return db.NotFound("Replay with ID %s not found", id)
	}
	return db.Error(err)
}

// Report returns what a replay measured. ErrConflict while it is running.
func (s *Store) Report(ctx context.Context, org db.Org, id string) (lab.Report, error) {
	out := lab.Report{Policies: []lab.Compared{}, Sessions: []lab.Reported{}, Results: []lab.Result{}}
	r, err := s.Replay(ctx, org, id)
	if err != nil {
		return out, err
	}
	if r.Status == Running {
		return out, db.Conflict("The replay still runs: %d of %d messages are replayed. Its report comes when its status is "+
			"done", r.StepsDone, r.Steps)
	}
	raws, err := db.All[json.RawMessage](ctx, s.DB, `
		SELECT p.result FROM replay_parts p JOIN replays r ON r.org = p.org AND r.key = p.replay_key
		WHERE p.org = $1 AND r.org = $1 AND r.id = $2 AND p.result IS NOT NULL ORDER BY p.number`, org, id)
	if err != nil {
		return out, err
	}
	for _, raw := range raws {
		var result lab.Result
		if err := json.Unmarshal(raw, &result); err != nil {
			return out, err
		}
		out.Results = append(out.Results, result)
	}
	parts, err := db.All[settings](ctx, s.DB, `
		SELECT DISTINCT ON (p.settings -> 'name', p.settings -> 'policy')
		       p.settings ->> 'name' AS name, p.settings -> 'policy' AS policy
		FROM replay_parts p JOIN replays r ON r.org = p.org AND r.key = p.replay_key
		WHERE p.org = $1 AND r.org = $1 AND r.id = $2 AND p.settings ? 'policy'
		ORDER BY p.settings -> 'name', p.settings -> 'policy'`, org, id)
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		out.Policies = append(out.Policies, lab.Compared{Name: p.Name, Asked: p.Policy})
	}
	raws, err = db.All[json.RawMessage](ctx, s.DB, `
		SELECT n.transcript FROM replay_sessions n JOIN replays r ON r.org = n.org AND r.key = n.replay_key
		WHERE n.org = $1 AND r.org = $1 AND r.id = $2 ORDER BY n.number`, org, id)
	for _, raw := range raws {
		var t transcript.Transcript
		if err := json.Unmarshal(raw, &t); err != nil {
			return out, err
		}
		out.Sessions = append(out.Sessions, lab.NewSession(t).Quote(out.Results))
	}
	return out, err
}
