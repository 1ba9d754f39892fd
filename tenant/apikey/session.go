package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// SessionTime is how long a person stays signed in to the console, unless the key ends earlier.
const SessionTime = 12 * time.Hour

// maxSessions is how many sessions a key may have. One more ends the oldest.
const maxSessions = 50

// sessionPrefix begins the secret of a session. No key's secret begins with it.
const sessionPrefix = "loci-session_"

// Session is a person who signed in to the console with a key.
type Session struct {
	ID        string    `db:"id"` // session- and a UUID
	KeyID     string    `db:"key_id"`
	KeyName   string    `db:"key_name"`
	OrgName   string    `db:"org_name"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// sessions selects sessions s that have not ended, with their keys k and organizations o. A query may append
// conditions.
const sessions = `
	SELECT s.id, s.key_id, k.name AS key_name, o.name AS org_name, s.created_at,
	       least(s.expires_at, k.expires_at) AS expires_at
	FROM console_sessions s JOIN api_keys k ON k.id = s.key_id JOIN organizations o USING (org)
	WHERE o.deleted_at IS NULL AND s.expires_at > now() AND coalesce(k.expires_at > now(), true)`

// StartSession signs a person in with a key. It returns the session's secret, which cannot be read again.
func (s *Store) StartSession(ctx context.Context, keyID string) (secret string, started Session, err error) {
	secret = sessionPrefix + (rand.Text() + rand.Text())[:secretChars]
	sum := sha256.Sum256([]byte(secret))
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		// Lock the key: otherwise sessions that begin at the same time would not count each other.
		if _, err := tx.Exec(ctx, `SELECT FROM api_keys WHERE id = $1 FOR NO KEY UPDATE`, keyID); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			WITH ended AS (
				DELETE FROM console_sessions
				WHERE sha256 IN (SELECT sha256 FROM console_sessions WHERE expires_at <= now() FOR UPDATE SKIP LOCKED)
				   OR sha256 IN (
					SELECT sha256 FROM console_sessions WHERE key_id = $2 ORDER BY created_at DESC, id OFFSET $4)
			)
			INSERT INTO console_sessions (sha256, key_id, expires_at) VALUES ($1, $2, now() + $3::interval)`,
			sum[:], keyID, SessionTime, maxSessions-1)
	})
	if err != nil {
		return "", Session{}, err
	}
	started, err = db.One[Session](ctx, s.DB, sessions+` AND s.sha256 = $1`, sum[:])
	return secret, started, err
}

// Sessions returns a page of the sessions of an organization. If org is 0, it lists those of all organizations.
func (s *Store) Sessions(ctx context.Context, org db.Org, p db.Page) ([]Session, error) {
	p.Order = "created_at, id"
	return db.List[Session](ctx, s.DB, p, sessions+` AND @only IN (0, k.org)`, pgx.StrictNamedArgs{"only": org})
}

// EndSession ends a session and returns it. If org is not 0, the session must belong to that organization. ErrNotFound
// if there is none.
func (s *Store) EndSession(ctx context.Context, org db.Org, id string) (Session, error) {
	ended, err := db.One[Session](ctx, s.DB, sessions+` AND s.id = $1 AND $2::integer IN (0, k.org)`, id, org)
	if err == nil {
		err = db.Exec(ctx, s.DB, `DELETE FROM console_sessions WHERE id = $1`, id)
	}
	return ended, db.OrNotFound(err, "Session with ID %s not found", id)
}

// ofSession returns the key of the session with a secret. ErrNotFound if there is no such session, or it has ended.
func (s *Store) ofSession(ctx context.Context, secret string) (Key, error) {
	type row struct {
		Key
		Session string `db:"session"`
		Sum     []byte `db:"sum"`
	}
	sum := sha256.Sum256([]byte(secret))
	found, err := db.One[row](ctx, s.DB, `
		SELECT k.*, s.id AS session, s.sha256 AS sum
		FROM console_sessions s JOIN (`+selectKeys+`) k ON k.id = s.key_id
		WHERE s.sha256 = $1 AND s.expires_at > now()`, sum[:])
	switch {
	case err != nil:
		return Key{}, err
	case subtle.ConstantTimeCompare(found.Sum, sum[:]) != 1:
		return Key{}, db.ErrNotFound
	case found.ExpiresAt != nil && !found.ExpiresAt.After(time.Now()):
		return found.Key, ErrExpired
	}
	found.SessionID = found.Session
	return found.Key, nil
}

// isSession reports whether a secret is a session's.
func isSession(secret string) bool { return strings.HasPrefix(secret, sessionPrefix) }
