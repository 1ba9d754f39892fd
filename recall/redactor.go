package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// redactor returns the organization's redactor. It reads the organization's key only once.
func (s *Store) redactor(ctx context.Context, org db.Org) (*redact.Redactor, error) {
	return s.redactorFrom(ctx, s.db, org)
}

// Redactor returns the function that cleans and redacts a text as an append does. It reads the organization's key from
// d.
func (s *Store) Redactor(ctx context.Context, d db.DB, org db.Org) (func(text string) string, error) {
	r, err := s.redactorFrom(ctx, d, org)
	return func(text string) string { return r.Redact(db.Clean(text)) }, err
}

// RedactText cleans and redacts a text as an append does.
func (s *Store) RedactText(ctx context.Context, org db.Org, text string) (string, error) {
	redacted, err := s.Redactor(ctx, s.db, org)
	if err != nil {
		return "", err
	}
	return redacted(text), nil
}

func (s *Store) redactorFrom(ctx context.Context, d db.DB, org db.Org) (*redact.Redactor, error) {
	if r, ok := s.redactors.Load(org); ok {
		return r.(*redact.Redactor), nil
	}
	key, err := db.One[[]byte](ctx, d, `SELECT redaction_key FROM organizations WHERE org = $1`, org)
	if err != nil {
		return nil, err
	}
	r, _ := s.redactors.LoadOrStore(org, redact.New(key, redact.Options{Entropy: s.o.Entropy}))
	return r.(*redact.Redactor), nil
}
