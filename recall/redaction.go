package recall

import (
	"context"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
)

// Cleaned returns drafts checked, cleaned and redacted, as an append stores them. No draft may be a tool result,
// because an append may store parts of results elsewhere.
func (s *Store) Cleaned(ctx context.Context, org db.Org, drafts []Draft) ([]Draft, error) {
	r, err := s.redactor(ctx, org)
	if err != nil {
		return nil, err
	}
	cleaned := make([]Draft, len(drafts))
	for i, d := range drafts {
		e, err := newEntry(d, r, surroundings{now: time.Now()})
		if err != nil {
			return nil, &DraftError{At: i, Err: err}
		}
		e.CreatedAt = d.CreatedAt
		cleaned[i] = e.Draft
	}
	return cleaned, nil
}

// Redacted returns drafts with their texts cleaned and redacted, as an append stores them. Nothing else changes.
func (s *Store) Redacted(ctx context.Context, org db.Org, drafts []Draft) ([]Draft, error) {
	r, err := s.redactor(ctx, org)
	if err != nil {
		return nil, err
	}
	redacted := make([]Draft, len(drafts))
	for i, d := range drafts {
		d.Content = slices.Clone(d.Content)
		for n := range d.Content {
			d.Content[n].clean(r)
			if err := d.Content[n].cleanJSON(r); err != nil {
				return nil, &DraftError{At: i, Err: err}
			}
		}
		for _, f := range d.fields() {
			if *f.value != nil {
				*f.value = new(cleanedID(**f.value, r))
			}
		}
		redacted[i] = d
	}
	return redacted, nil
}
