package archival

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
)

// superseding is the row lock of an archive that a superseding request takes. Such requests run one after the other, so
// that no two of them close a chain into a loop.
const superseding = "NO KEY UPDATE"

// change is an update of a passage; after is the time in which the passage then holds.
type change struct {
	PassageUpdate
	after validity
}

// validity is the time in which a passage holds, and the key of its successor.
type validity struct {
	db.Validity
	successor *int64
}

// validity returns the time in which a locked passage holds after an update. ErrInvalid if it would end before it
// begins.
func (s *Store) validity(ctx context.Context, org db.Org, before Passage, u PassageUpdate) (validity, error) {
	after := validity{Validity: before.Validity}
	if u.ValidFrom != nil {
		after.ValidFrom = u.ValidFrom.At
	}
	if u.ValidUntil != nil {
		after.ValidUntil = u.ValidUntil.At
	}
	id := before.SupersededBy
	if u.SupersededBy != nil {
		id = u.SupersededBy
	}
	if id == nil || *id == "" {
		if before.SupersededBy != nil && u.ValidUntil == nil {
			if err := s.undoEnd(ctx, org, *before.SupersededBy, &after); err != nil {
				return after, err
			}
		}
		return after, after.Check()
	}
	if before.SupersededBy != nil && *before.SupersededBy != *id {
		return after, &SupersededError{Current: before}
	}
	next, err := s.successor(ctx, org, before, *id)
	if err != nil {
		return after, err
	}
	after.successor = &next.Key
	if u.ValidUntil == nil && before.SupersededBy == nil {
		after.ValidUntil = earlier(before.ValidUntil, next.Begins)
	}
	if after.ValidUntil == nil {
		return after, &db.FieldError{Field: "valid_until", Rule: "the passage is superseded by " + *id + ", so that it has " +
			"an end; to remove it, remove superseded_by too"}
	}
	return after, after.Check()
}

// undoEnd clears the end that a successor set. An end before the successor's beginning is the passage's own and stays.
func (s *Store) undoEnd(ctx context.Context, org db.Org, successor string, held *validity) error {
	begins, err := db.One[time.Time](ctx, s.db, `
		SELECT coalesce(valid_from, created_at) FROM passages WHERE org = $1 AND id = $2`, org, uuidOf(successor))
	if err == nil && held.ValidUntil != nil && !held.ValidUntil.Before(begins) {
		held.ValidUntil = nil
	}
	return err
}

func earlier(end *time.Time, at time.Time) *time.Time {
	if end != nil && end.Before(at) {
		return end
	}
	return &at
}

// next is the successor of a passage.
type next struct {
	Key    int64     `db:"key"`
	Begins time.Time `db:"begins"`
	Loops  bool      `db:"loops"`
}

// successor returns the passage id as the successor of p, from the same archive. It begins at its ValidFrom, or now if
// it has none.
func (s *Store) successor(ctx context.Context, org db.Org, p Passage, id string) (next, error) {
	n, err := db.One[next](ctx, s.db, `
		WITH RECURSIVE chain (key) AS (
			SELECT n.key FROM passages n WHERE n.org = $1 AND n.id = $2
			UNION
			SELECT o.superseded_by FROM chain JOIN passages o ON o.org = $1 AND o.key = chain.key
			WHERE o.superseded_by IS NOT NULL
		)
		SELECT n.key, coalesce(n.valid_from, now()) AS begins, $3 IN (SELECT key FROM chain) AS loops
		FROM passages n JOIN passages p ON p.org = n.org AND p.archive_key = n.archive_key
		WHERE n.org = $1 AND n.id = $2 AND p.org = $1 AND p.key = $3`, org, uuidOf(id), p.Key)
	switch {
	case errors.Is(err, db.ErrNotFound):
		err = &db.FieldError{Field: "superseded_by", Rule: "the archive of the passage has no passage " + db.Short(id)}
	case n.Loops && n.Key == p.Key:
		err = &db.FieldError{Field: "superseded_by", Rule: "a passage cannot supersede itself"}
	case n.Loops:
		err = &db.FieldError{Field: "superseded_by", Rule: db.Short(id) + " is superseded by the passage, if through " +
			"others; a chain cannot be a loop"}
	}
	return n, err
}

// supersededArchive returns the id of the archive that holds a passage to be superseded, which must be within the
// reach.
func (s *Store) supersededArchive(ctx context.Context, org db.Org, r Reach, id string) (string, error) {
	if _, err := db.AgentKey(ctx, s.db, org, r.AgentID); err != nil {
		return "", err
	}
	p, err := s.Passage(ctx, org, r, id)
	return p.ArchiveID, unknownSuperseded(err, id)
}

func unknownSuperseded(err error, id string) error {
	if errors.Is(err, db.ErrNotFound) {
		return &db.FieldError{Field: "supersedes", Rule: "there is no passage " + db.Short(id)}
	}
	return err
}

// endSuperseded ends the passages that the batch's stored drafts supersede.
func (s *Store) endSuperseded(ctx context.Context, org db.Org, archiveID string, b *Batch) error {
	for _, p := range b.pieces {
		if p.supersedes == "" {
			continue
		}
		var successor Inserted
		if err := b.records.read(p.inserted, &successor); err != nil {
			return err
		}
		old, err := s.ArchivePassage(ctx, org, archiveID, p.supersedes)
		if err == nil {
			_, err = s.update(ctx, org, Of(""), old.ID, PassageUpdate{SupersededBy: &successor.ID})
		}
		if field, ok := errors.AsType[*db.FieldError](err); ok {
			err = &db.FieldError{Field: "supersedes", Rule: field.Rule}
		}
		if err != nil {
			return unknownSuperseded(err, p.supersedes)
		}
	}
	return nil
}

// RestoreSuccessions stores which passages of a restored archive superseded which. ErrInvalid if the archive does not
// have a passage, or a chain is a loop.
func (s *Store) RestoreSuccessions(ctx context.Context, org db.Org, archiveID string, list []db.Succession) error {
	if len(list) == 0 {
		return nil
	}
	archive, err := s.lock(ctx, org, archiveID, superseding)
	if err != nil {
		return err
	}
	if err := db.CheckChains(list); err != nil {
		return err
	}
	ended, successors := make([]uuid.UUID, len(list)), make([]uuid.UUID, len(list))
	for i, l := range list {
		ended[i], successors[i] = uuidOf(l.Ended), uuidOf(l.By)
	}
	tag, err := s.db.Exec(ctx, `
		UPDATE passages p SET superseded_by = n.key
		FROM unnest($3::uuid[], $4::uuid[]) AS l (ended, by) JOIN passages n ON n.org = $1 AND n.id = l.by
		WHERE p.org = $1 AND p.archive_key = $2 AND n.archive_key = $2 AND p.id = l.ended`, org, archive, ended, successors)
	if err == nil && tag.RowsAffected() != int64(len(list)) {
		return &db.FieldError{Field: "superseded_by", Rule: "the archive " + archiveID + " lacks a passage that another " +
			"one names"}
	}
	return db.Error(err)
}
