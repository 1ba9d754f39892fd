// Package apikey stores organizations and their API keys. A request is served for the organization of its key.
package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Store keeps API keys. Only the hash of a key's secret is stored.
type Store struct{ DB db.DB }

// Key describes an API key.
type Key struct {
	ID        string    `db:"id"` // key- and a UUID
	Org       string    `db:"org_name"`
	Name      string    `db:"name"`
	Prefix    string    `db:"prefix"`   // the first characters of the secret, to tell keys apart
	Operator  bool      `db:"operator"` // whether the key manages organizations
	CreatedAt time.Time `db:"created_at"`
}

const (
	defaultOrg    = "default"
	registered    = "LOCI_API_KEY" // the name of the key that comes with the server's settings
	secretPrefix  = "loci_"
	secretChars   = 40 // of five random bits each
	minSecretSize = 16
)

// NewKey says what key to create.
type NewKey struct {
	Org      string // name of the organization, which is created if it is new
	Name     string
	Operator bool // of the default organization only
}

// Create creates a key and returns its secret, which cannot be read again. ErrInvalid if a name is not allowed.
func (s *Store) Create(ctx context.Context, n NewKey) (secret string, key Key, err error) {
	if err := errors.Join(checkName("organization", n.Org), checkName("key", n.Name)); err != nil {
		return "", Key{}, err
	}
	if n.Name == registered {
		return "", Key{}, db.Invalid("%s is the name of the key in the server's settings; choose another", registered)
	}
	if n.Operator && n.Org != defaultOrg {
		return "", Key{}, db.Invalid("an operator's key belongs to the organization %s, not to %s", defaultOrg, n.Org)
	}
	secret = secretPrefix + (rand.Text() + rand.Text())[:secretChars]
	sum := sha256.Sum256([]byte(secret))
	key, err = db.One[Key](ctx, s.DB, `
		WITH o AS (
			INSERT INTO organizations (name) VALUES (@org)
			ON CONFLICT (name) WHERE deleted_at IS NULL DO UPDATE SET name = excluded.name
			RETURNING org, name
		), k AS (
			INSERT INTO api_keys (org, name, prefix, sha256, operator)
			SELECT org, @name, @prefix, @sum, @operator FROM o
			RETURNING id, name, prefix, operator, created_at
		), c AS (
			INSERT INTO keys_required SELECT true ON CONFLICT DO NOTHING
		)
		SELECT k.id, o.name AS org_name, k.name, k.prefix, k.operator, k.created_at FROM k, o`,
		pgx.StrictNamedArgs{"org": n.Org, "name": n.Name, "prefix": prefixOf(secret), "sum": sum[:],
			"operator": n.Operator})
	return secret, key, err
}

// checkName returns an ErrInvalid if a text cannot be the name of an organization or a key.
func checkName(what, name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 200 {
		return db.Invalid("the %s's name has %d characters; it must have from 1 to 200", what, n)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return db.Invalid("the %s's name %q has control characters", what, name)
	}
	if strings.TrimSpace(name) == "" {
		return db.Invalid("the %s's name is blank", what)
	}
	if id, ok := strings.CutPrefix(name, "org-"); ok && uuid.Validate(id) == nil {
		return db.Invalid("%s is the id of an organization, and no name: give the name", name)
	}
	return nil
}

// prefixOf returns the part of a secret that may be shown.
func prefixOf(secret string) string { return secret[:min(len(secret)/4, 12)] }

// List returns every key, oldest first.
func (s *Store) List(ctx context.Context) ([]Key, error) {
	return db.All[Key](ctx, s.DB, `
		SELECT k.id, o.name AS org_name, k.name, k.prefix, k.operator, k.created_at
		FROM api_keys k JOIN organizations o USING (org)
		ORDER BY k.created_at, k.id`)
}

// Revoke deletes the key with an id, prefix or secret. ErrNotFound if no key has it, ErrConflict if several keys have
// the prefix.
func (s *Store) Revoke(ctx context.Context, idOrPrefix string) error {
	sum := sha256.Sum256([]byte(idOrPrefix))
	ids, err := db.All[string](ctx, s.DB, `
		SELECT id FROM api_keys WHERE id = $1 OR prefix = $1 OR sha256 = $2 ORDER BY id`, idOrPrefix, sum[:])
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return db.NotFound("there is no API key %s", idOrPrefix)
	case len(ids) > 1:
		return db.Conflict("%d API keys begin with %s; revoke one by its id", len(ids), idOrPrefix)
	}
	return db.Exec(ctx, s.DB, `DELETE FROM api_keys WHERE id = $1`, ids[0])
}

// Register makes the secret from the server's settings a key of the default organization and deletes the one registered
// before. Registering a secret again changes nothing. ErrInvalid if the secret is too short.
func (s *Store) Register(ctx context.Context, secret string) error {
	if len(secret) < minSecretSize {
		return db.Invalid("the API key has %d bytes; it must have at least %d", len(secret), minSecretSize)
	}
	sum := sha256.Sum256([]byte(secret))
	_, err := s.DB.Exec(ctx, `
		WITH o AS (
			SELECT org FROM organizations WHERE name = @org AND deleted_at IS NULL
		), before AS (
			DELETE FROM api_keys k USING o WHERE k.org = o.org AND k.name = @name AND k.sha256 <> @sum
		), c AS (
			INSERT INTO keys_required SELECT true ON CONFLICT DO NOTHING
		)
		INSERT INTO api_keys (org, name, prefix, sha256)
		SELECT org, @name, @prefix, @sum FROM o
		ON CONFLICT (sha256) DO NOTHING`,
		pgx.StrictNamedArgs{"org": defaultOrg, "name": registered, "prefix": prefixOf(secret), "sum": sum[:]})
	return db.Error(err)
}

// Any reports whether a key exists.
func (s *Store) Any(ctx context.Context) (bool, error) {
	return db.One[bool](ctx, s.DB, `SELECT EXISTS (SELECT FROM api_keys)`)
}

// Lookup returns the organization of the key with a secret, and whether it is an operator's key. ErrNotFound if no key
// has it.
func (s *Store) Lookup(ctx context.Context, secret string) (org db.Org, operator bool, err error) {
	type row struct {
		Org      db.Org `db:"org"`
		Sum      []byte `db:"sha256"`
		Operator bool   `db:"operator"`
	}
	sum := sha256.Sum256([]byte(secret))
	found, err := db.One[row](ctx, s.DB, `
		SELECT k.org, k.sha256, k.operator FROM api_keys k JOIN organizations o USING (org)
		WHERE k.sha256 = $1 AND o.deleted_at IS NULL`, sum[:])
	if err == nil && subtle.ConstantTimeCompare(found.Sum, sum[:]) != 1 {
		return 0, false, db.ErrNotFound
	}
	return found.Org, found.Operator, err
}

// OpenOrg returns the default organization until the first key is made, and from then on ErrNotFound, whether or not
// keys are revoked.
func (s *Store) OpenOrg(ctx context.Context) (db.Org, error) {
	return db.One[db.Org](ctx, s.DB, `
		SELECT org FROM organizations WHERE name = $1 AND NOT EXISTS (SELECT FROM keys_required)`, defaultOrg)
}

// Reopen makes OpenOrg return the default organization again, unless a key exists.
func (s *Store) Reopen(ctx context.Context) error {
	_, err := s.DB.Exec(ctx, `DELETE FROM keys_required WHERE NOT EXISTS (SELECT FROM api_keys)`)
	return db.Error(err)
}
