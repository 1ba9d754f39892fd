package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Keys keeps API keys. A key belongs to one organization; only its hash is stored.
type Keys struct {
	DB db.DB
}

// Key is what is known of an API key.
type Key struct {
	ID        string    `db:"id"` // key- and a UUID
	Org       string    `db:"org_name"`
	Name      string    `db:"name"`
	Prefix    string    `db:"prefix"` // the first characters of the secret, to tell keys apart
	CreatedAt time.Time `db:"created_at"`
}

const (
	defaultOrg    = "default"
	registered    = "LOCI_API_KEY" // the name of the key that comes with the server's settings
	secretPrefix  = "loci_"
	secretChars   = 40 // of five random bits each
	minSecretSize = 16
)

// Create makes a key for an organization, which is created if there is none of that name. The secret is returned this once.
func (k *Keys) Create(ctx context.Context, org, name string) (secret string, key Key, err error) {
	for what, text := range map[string]string{"organization": org, "key": name} {
		if n := utf8.RuneCountInString(text); n < 1 || n > 200 {
			return "", Key{}, db.Invalid("the %s's name has %d characters; it must have from 1 to 200", what, n)
		}
	}
	if name == registered {
		return "", Key{}, db.Invalid("%s is the name of the key in the server's settings; choose another", registered)
	}
	secret = secretPrefix + (rand.Text() + rand.Text())[:secretChars]
	sum := sha256.Sum256([]byte(secret))
	key, err = db.One[Key](ctx, k.DB, `
		WITH o AS (
			INSERT INTO organizations (name) VALUES (@org)
			ON CONFLICT (name) DO UPDATE SET name = excluded.name
			RETURNING org, name
		), k AS (
			INSERT INTO api_keys (org, name, prefix, sha256)
			SELECT org, @name, @prefix, @sum FROM o
			RETURNING id, name, prefix, created_at
		)
		SELECT k.id, o.name AS org_name, k.name, k.prefix, k.created_at FROM k, o`,
		pgx.StrictNamedArgs{"org": org, "name": name, "prefix": prefixOf(secret), "sum": sum[:]})
	return secret, key, err
}

// prefixOf is as much of a secret as may be shown.
func prefixOf(secret string) string { return secret[:min(len(secret)/4, 12)] }

// List lists every key, oldest first.
func (k *Keys) List(ctx context.Context) ([]Key, error) {
	return db.All[Key](ctx, k.DB, `
		SELECT k.id, o.name AS org_name, k.name, k.prefix, k.created_at
		FROM api_keys k JOIN organizations o USING (org)
		ORDER BY k.created_at, k.id`)
}

// Revoke deletes the key with this id or prefix, or the one that this is; it is refused from then on. ErrNotFound if there is none, ErrConflict if several keys
// have the prefix.
func (k *Keys) Revoke(ctx context.Context, idOrPrefix string) error {
	sum := sha256.Sum256([]byte(idOrPrefix))
	ids, err := db.All[string](ctx, k.DB, `
		SELECT id FROM api_keys WHERE id = $1 OR prefix = $1 OR sha256 = $2 ORDER BY id`, idOrPrefix, sum[:])
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return db.NotFound("there is no API key %s", idOrPrefix)
	case len(ids) > 1:
		return db.Conflict("%d API keys begin with %s; revoke one by its id", len(ids), idOrPrefix)
	}
	return db.Exec(ctx, k.DB, `DELETE FROM api_keys WHERE id = $1`, ids[0])
}

// Register makes a secret from the server's settings a key of the default organization, in the place of the one that was registered
// before. Registering it again changes nothing. ErrInvalid if it is too short to be one.
func (k *Keys) Register(ctx context.Context, secret string) error {
	if len(secret) < minSecretSize {
		return db.Invalid("the API key has %d bytes; it must have at least %d", len(secret), minSecretSize)
	}
	sum := sha256.Sum256([]byte(secret))
	_, err := k.DB.Exec(ctx, `
		WITH o AS (
			SELECT org FROM organizations WHERE name = @org
		), before AS (
			DELETE FROM api_keys k USING o WHERE k.org = o.org AND k.name = @name AND k.sha256 <> @sum
		)
		INSERT INTO api_keys (org, name, prefix, sha256)
		SELECT org, @name, @prefix, @sum FROM o
		ON CONFLICT (sha256) DO NOTHING`,
		pgx.StrictNamedArgs{"org": defaultOrg, "name": registered, "prefix": prefixOf(secret), "sum": sum[:]})
	return db.Error(err)
}

// Any tells whether there is a key: without one the server is open to its own machine.
func (k *Keys) Any(ctx context.Context) (bool, error) {
	return db.One[bool](ctx, k.DB, `SELECT EXISTS (SELECT FROM api_keys)`)
}

// Lookup returns the organization of a key. ErrNotFound if there is no such key.
func (k *Keys) Lookup(ctx context.Context, secret string) (db.Org, error) {
	type row struct {
		Org db.Org `db:"org"`
		Sum []byte `db:"sha256"`
	}
	sum := sha256.Sum256([]byte(secret))
	found, err := db.One[row](ctx, k.DB, `SELECT org, sha256 FROM api_keys WHERE sha256 = $1`, sum[:])
	if err == nil && subtle.ConstantTimeCompare(found.Sum, sum[:]) != 1 {
		err = db.ErrNotFound
	}
	return found.Org, err
}

// open returns the default organization while there is no key at all; errUnauthorized once there is one.
func (k *Keys) open(ctx context.Context) (db.Org, error) {
	org, err := db.One[db.Org](ctx, k.DB, `
		SELECT org FROM organizations WHERE name = $1 AND NOT EXISTS (SELECT FROM api_keys)`, defaultOrg)
	if errors.Is(err, db.ErrNotFound) {
		return 0, errUnauthorized
	}
	return org, err
}
