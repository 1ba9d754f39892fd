// Package apikey stores organizations and their API keys. A request is served for the organization of its key.
//
// Each file uses only the files named before it:
//   - keys and their rights: apikey.go scope.go
//   - organizations, and the default one while there is no key: organization.go open.go
//   - people who are signed in: session.go
package apikey

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// Store keeps API keys. It stores only the hash of a key's secret.
type Store struct {
	DB db.DB

	closed closed
}

// Key describes an API key.
type Key struct {
	ID         string     `db:"id" json:"id"` // key- and a UUID
	Org        db.Org     `db:"org" json:"-"`
	OrgID      string     `db:"org_id" json:"org_id"`
	OrgName    string     `db:"org_name" json:"org_name"`
	Name       string     `db:"name" json:"name"`
	Prefix     string     `db:"prefix" json:"prefix"` // first characters of the secret, by which people tell keys apart
	Scopes     []string   `db:"scopes" json:"scopes"`
	AgentIDs   []string   `db:"agent_ids" json:"agent_ids"` // agents for which the scope Tools holds
	UserID     *string    `db:"user_id" json:"user_id"`     // the identity to which the key is bound; nil: to none
	UserKey    int64      `db:"user_key" json:"-"`          // key of that identity; 0: bound to none
	Operator   bool       `db:"operator" json:"operator"`   // the key may manage organizations
	CreatedAt  time.Time  `db:"created_at" json:"created_at"`
	ExpiresAt  *time.Time `db:"expires_at" json:"expires_at"`
	LastUsedAt *time.Time `db:"last_used_at" json:"last_used_at"` // exact to about a minute

	SessionID string `db:"-" json:"-"` // set if the secret belonged to a console session; empty for the key's own secret

	// nil: the server's setting; so for RequestsAtOnce
	RequestsPerMinute *int `db:"requests_per_minute" json:"requests_per_minute"`
	RequestsAtOnce    *int `db:"requests_at_once" json:"requests_at_once"`

	GatewayMode string `db:"gateway_mode" json:"gateway_mode"` // of its requests to the gateway; empty: the agent's
}

// selectKeys selects keys k with their organizations o. A query may append conditions.
const selectKeys = `
	SELECT k.id, k.org, o.id AS org_id, o.name AS org_name, k.name, k.prefix, k.scopes, k.agent_ids, k.operator,
		k.user_id, coalesce(k.user_key, 0) AS user_key,
		k.created_at, k.expires_at, k.last_used_at, k.requests_per_minute, k.requests_at_once,
		coalesce(k.gateway_mode, '') AS gateway_mode
	FROM api_keys k JOIN organizations o USING (org)
	WHERE o.deleted_at IS NULL`

// DefaultOrg is the name of the organization that every new database has.
const DefaultOrg = "default"

const (
	registered    = "LOCI_API_KEY" // name of the key that the server's settings give
	secretPrefix  = "loci_"
	secretChars   = 40 // five random bits each
	minSecretSize = 16
	maxPrefix     = 12
	idPrefix      = "key-"
)

// NewKey describes a key to create.
type NewKey struct {
	Org       string // name of the organization; a new name creates one
	In        db.Org // key of the organization, instead of its name; 0 if Org is set
	Name      string
	Scopes    []string
	AgentIDs  []string // agents for the scope Tools
	User      *User    // binds the key, which then has no scope but Tools; nil: it is bound to none
	UserNamed string   // names the user who is to be bound, for the caller of Create, who finds them; Create ignores it
	Operator  bool     // only in the default organization, and with the scope Admin
	ExpiresAt *time.Time

	RequestsPerMinute, RequestsAtOnce *int // nil: the server's setting

	GatewayMode string // observe, remember or manage; empty: the agent's

	Maker    *Key   // the key that asks for the new one; nil for the operator of the machine
	Defaults Limits // the server's limits; they bind a maker without limits of its own, except an operator's key
}

// User is the identity to which a key is bound.
type User struct {
	ID  string
	Key int64
}

// Create creates a key and returns its secret, which cannot be read again. ErrInvalid if a rule is broken; ErrNotFound
// if the organization has no such agent; *StrongerError if the key could do more than its maker.
func (s *Store) Create(ctx context.Context, n NewKey) (secret string, key Key, err error) {
	n.Scopes, n.AgentIDs = unique(n.Scopes), unique(n.AgentIDs)
	err = n.Check()
	if err == nil && n.In == 0 {
		err = CheckOrgName(n.Org)
	}
	if err == nil && n.Maker != nil {
		err = cmp.Or(n.checkNotStronger(*n.Maker), n.checkFirst(*n.Maker))
	}
	if err != nil {
		return "", Key{}, err
	}
	n.Org = plain(n.Org)
	secret = secretPrefix + (rand.Text() + rand.Text())[:secretChars]
	err = pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		key, err = n.insert(ctx, tx, secret)
		return err
	})
	return secret, key, err
}

// Check returns ErrInvalid if the key breaks a rule that holds in every organization.
func (n NewKey) Check() error {
	err := errors.Join(checkName("key", n.Name), n.check(), n.checkLimits())
	if err == nil && n.Name == registered {
		err = db.Invalid("%s is the name of the key in the server's settings; choose another", registered)
	}
	return err
}

// unique returns the list without repeated entries.
func unique(list []string) (once []string) {
	for _, text := range list {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}

// organization returns the new key's organization, locked until the transaction ends.
func (n NewKey) organization(ctx context.Context, tx pgx.Tx) (o Organization, err error) {
	if n.In == 0 {
		o, err = db.One[Organization](ctx, tx, `
			INSERT INTO organizations (name) VALUES ($1)
			ON CONFLICT (name) WHERE deleted_at IS NULL DO UPDATE SET name = excluded.name
			RETURNING `+orgColumns, n.Org)
	} else {
		o, err = db.One[Organization](ctx, tx, `
			SELECT `+orgColumns+` FROM organizations WHERE org = $1 AND deleted_at IS NULL FOR SHARE`, n.In)
	}
	if err == nil && n.Operator && o.Name != DefaultOrg {
		err = db.Invalid("an operator's key belongs to the organization %s, not to %s", DefaultOrg, o.Name)
	}
	return o, err
}

func (n NewKey) insert(ctx context.Context, tx pgx.Tx, secret string) (key Key, err error) {
	o, err := n.organization(ctx, tx)
	if err != nil {
		return key, err
	}
	unknown, err := db.All[string](ctx, tx, `
		SELECT id FROM unnest($2::text[]) id WHERE NOT EXISTS (SELECT FROM agents a WHERE a.org = $1 AND a.id = id.id)`,
		o.Org, n.AgentIDs)
	if err == nil && len(unknown) > 0 {
		err = db.NotFound("Agent with ID %s not found", unknown[0])
	}
	if err != nil {
		return key, err
	}
	sum := sha256.Sum256([]byte(secret))
	if err := requireKeys(ctx, tx); err != nil {
		return key, err
	}
	var user *string
	var userKey *int64
	if n.User != nil {
		user, userKey = &n.User.ID, &n.User.Key
	}
	id, err := db.One[string](ctx, tx, `
		INSERT INTO api_keys (org, name, prefix, sha256, scopes, agent_ids, operator, expires_at, requests_per_minute,
			requests_at_once, user_id, user_key, gateway_mode)
		VALUES (@org, @name, @prefix, @sum, @scopes, coalesce(@agents::text[], '{}'), @operator, @expires, @per_minute,
			@at_once, @user, @user_key, nullif(@mode, ''))
		RETURNING id`,
		pgx.StrictNamedArgs{"org": o.Org, "name": n.Name, "prefix": prefixOf(secret), "sum": sum[:], "scopes": n.Scopes,
			"agents": n.AgentIDs, "operator": n.Operator, "expires": n.ExpiresAt, "per_minute": n.RequestsPerMinute,
			"at_once": n.RequestsAtOnce, "user": user, "user_key": userKey,
			"mode": n.GatewayMode})
	if err != nil {
		return key, err
	}
	return db.One[Key](ctx, tx, selectKeys+` AND k.id = $1`, id)
}

// plain returns a name with single spaces, in Unicode's form NFC, so that names that look alike are equal.
func plain(name string) string { return norm.NFC.String(strings.Join(strings.Fields(name), " ")) }

// isUnseen reports whether a character is invisible. Names with such characters could look alike and differ.
func isUnseen(r rune) bool {
	return r != zeroWidthJoiner &&
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector)
}

const zeroWidthJoiner = '\u200d' // stands between emoji, and in scripts of India

// CheckOrgName returns ErrInvalid if the name is not allowed for an organization.
func CheckOrgName(name string) error { return checkName("organization", name) }

// checkName returns ErrInvalid if the name is not allowed for an organization or a key.
func checkName(what, name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 200 {
		return db.Invalid("the %s's name has %d characters; it must have from 1 to 200", what, n)
	}
	if strings.ContainsFunc(name, isUnseen) {
		return db.Invalid("the %s's name %q has control characters, or others that are not seen", what, name)
	}
	if strings.TrimSpace(name) == "" {
		return db.Invalid("the %s's name is blank", what)
	}
	if id, ok := strings.CutPrefix(name, "org-"); ok && uuid.Validate(id) == nil {
		return db.Invalid("%s is the id of an organization, and no name: give the name", name)
	}
	return db.CheckUTF8("the "+what+"'s name", name)
}

// secrets matches the secrets that Create and StartSession make.
var secrets = regexp.MustCompile(fmt.Sprintf("(?:%s|%s)[A-Z2-7]{%d}", secretPrefix, sessionPrefix, secretChars))

// Mask shortens the secrets in a text, so that the text can be logged.
func Mask(text string) string {
	return secrets.ReplaceAllStringFunc(text, func(secret string) string { return prefixOf(secret) + "…" })
}

// prefixOf returns the start of a secret, which may be shown.
func prefixOf(secret string) string { return secret[:min(len(secret)/4, maxPrefix)] }

// List returns every key, oldest first.
func (s *Store) List(ctx context.Context) ([]Key, error) {
	return db.All[Key](ctx, s.DB, selectKeys+` ORDER BY k.created_at, k.id`)
}

// Keys returns a page of an organization's keys. If org is 0, it lists those of all organizations.
func (s *Store) Keys(ctx context.Context, org db.Org, p db.Page) ([]Key, error) {
	p.Order = "created_at, id"
	return db.List[Key](ctx, s.DB, p, selectKeys+` AND @only IN (0, k.org)`, pgx.StrictNamedArgs{"only": org})
}

// Key returns a key by its id. If org is not 0, the key must belong to that organization. ErrNotFound if there is none.
func (s *Store) Key(ctx context.Context, org db.Org, id string) (Key, error) {
	key, err := db.One[Key](ctx, s.DB, selectKeys+` AND k.id = $1 AND $2::integer IN (0, k.org)`, id, org)
	return key, db.OrNotFound(err, "API key with ID %s not found", id)
}

// Delete revokes a key. If org is not 0, the key must belong to that organization. *StrongerError if an operator's key
// is to be revoked by requester, a key that is not an operator's.
func (s *Store) Delete(ctx context.Context, org db.Org, id string, requester Key) (Key, error) {
	key, err := s.Key(ctx, org, id)
	if err == nil && key.Operator && !requester.Operator {
		err = stronger("Only an operator's key revokes another one")
	}
	if err == nil {
		err = s.revoke(ctx, id)
	}
	return key, err
}

// Revoke deletes the key with an id, a prefix or a secret, and returns its id. ErrNotFound if there is none;
// ErrConflict if several keys have the prefix. A secret is hashed before it is sent to the database.
func (s *Store) Revoke(ctx context.Context, named string) (id string, err error) {
	sum, shown := sha256.Sum256([]byte(named)), ""
	if len(named) <= maxPrefix || strings.HasPrefix(named, idPrefix) {
		shown = named
	}
	ids, err := db.All[string](ctx, s.DB, `
		SELECT id FROM api_keys WHERE $1 IN (id, prefix) OR sha256 = $2 ORDER BY id`, shown, sum[:])
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0 && shown == "":
		return "", db.NotFound("there is no such API key")
	case len(ids) == 0:
		return "", db.NotFound("there is no API key %s", named)
	case len(ids) > 1:
		return "", db.Conflict("%d API keys begin with %s; revoke one by its id", len(ids), named)
	}
	return ids[0], s.revoke(ctx, ids[0])
}

// revoke deletes a key. It keeps the key's hash, so that Register does not accept the secret again.
func (s *Store) revoke(ctx context.Context, id string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		sum, err := db.One[[]byte](ctx, tx, `DELETE FROM api_keys WHERE id = $1 RETURNING sha256`, id)
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			INSERT INTO revoked_keys (sha256) VALUES ($1) ON CONFLICT (sha256) DO UPDATE SET revoked_at = now()`, sum)
	})
}

// Register makes the secret from the server's settings a key of the default organization, and deletes the key that was
// registered before. Registering the same secret again changes nothing. revoked reports that the secret belongs to a
// revoked key, which stays revoked. ErrInvalid if the secret is too short, or belongs to a key with other rights.
func (s *Store) Register(ctx context.Context, secret string) (revoked bool, err error) {
	if err := s.CheckRegistered(ctx, secret); err != nil {
		return false, err
	}
	sum := sha256.Sum256([]byte(secret))
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := requireKeys(ctx, tx); err != nil {
			return err
		}
		orgs, err := db.All[db.Org](ctx, tx, `
			SELECT org FROM organizations WHERE name = $1 AND deleted_at IS NULL`, DefaultOrg)
		if err != nil || len(orgs) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `
			DELETE FROM api_keys WHERE org = $1 AND name = $2 AND sha256 <> $3`, orgs[0], registered, sum[:]); err != nil {
			return err
		}
		gone, err := db.One[bool](ctx, tx, `SELECT EXISTS (SELECT FROM revoked_keys WHERE sha256 = $1)`, sum[:])
		if err != nil || gone {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO api_keys (org, name, prefix, sha256) VALUES ($1, $2, $3, $4) ON CONFLICT (sha256) DO NOTHING`,
			orgs[0], registered, prefixOf(secret), sum[:])
		return err
	})
	if err != nil {
		return false, db.Error(err)
	}
	return db.One[bool](ctx, s.DB, `
		SELECT EXISTS (SELECT FROM revoked_keys WHERE sha256 = $1)
			AND NOT EXISTS (SELECT FROM api_keys WHERE sha256 = $1)`, sum[:])
}

// requireKeys makes the server answer only requests with a key.
func requireKeys(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO keys_required SELECT true ON CONFLICT DO NOTHING`)
	return err
}

// CheckRegistered returns the error that Register would return. It changes nothing.
func (s *Store) CheckRegistered(ctx context.Context, secret string) error {
	if len(secret) < minSecretSize {
		return db.Invalid("the API key has %d bytes; it must have at least %d", len(secret), minSecretSize)
	}
	key, err := s.Lookup(ctx, secret)
	switch {
	case err == nil || errors.Is(err, ErrExpired):
		return key.checkRegistered()
	case errors.Is(err, db.ErrNotFound):
		return nil
	}
	return err
}

// checkRegistered returns ErrInvalid unless the key has exactly the rights of a key from the server's settings:
// everything in the default organization, without an end, and without limits of its own.
func (k Key) checkRegistered() error {
	if k.OrgName == DefaultOrg && k.May(Write) && k.ExpiresAt == nil && k.Limits(Limits{}) == (Limits{}) {
		return nil
	}
	does := "the scopes " + strings.Join(k.Scopes, ", ")
	if k.ExpiresAt != nil {
		does += ", the end " + k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if l := k.Limits(Limits{}); l != (Limits{}) {
		does += ", and limits of its own"
	}
	return db.Invalid("it is the key %s already, which belongs to the organization %q and has %s; that of the "+
		"server's settings does everything in the organization %s: choose another secret, or leave the setting out",
		k.ID, k.OrgName, does, DefaultOrg)
}

// Any reports whether a key exists.
func (s *Store) Any(ctx context.Context) (bool, error) {
	return db.One[bool](ctx, s.DB, `SELECT EXISTS (SELECT FROM api_keys)`)
}

// AnyValid reports whether there is a key that has not expired.
func (s *Store) AnyValid(ctx context.Context) (bool, error) {
	return db.One[bool](ctx, s.DB, `
		SELECT EXISTS (SELECT FROM api_keys WHERE expires_at IS NULL OR expires_at > now())`)
}

// ErrExpired is returned by Lookup for a key that has expired.
var ErrExpired = errors.New("expired")

// Lookup returns the key that a secret belongs to, directly or as a session's secret. ErrNotFound if there is none;
// ErrExpired, together with the key, if the key has expired.
func (s *Store) Lookup(ctx context.Context, secret string) (Key, error) {
	if isSession(secret) {
		return s.ofSession(ctx, secret)
	}
	type row struct {
		Key
		Sum     []byte `db:"sha256"`
		Expired bool   `db:"expired"`
	}
	sum := sha256.Sum256([]byte(secret))
	found, err := db.One[row](ctx, s.DB, `
		SELECT k.*, h.sha256, coalesce(k.expires_at <= now(), false) AS expired
		FROM (`+selectKeys+`) k JOIN api_keys h USING (id)
		WHERE h.sha256 = $1`, sum[:])
	switch {
	case err != nil:
		return Key{}, err
	case subtle.ConstantTimeCompare(found.Sum, sum[:]) != 1:
		return Key{}, db.ErrNotFound
	case found.Expired:
		return found.Key, ErrExpired
	}
	return found.Key, nil
}

// Used records that a key is used now, unless a use within the last minute is recorded.
func (s *Store) Used(ctx context.Context, id string) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE api_keys SET last_used_at = now()
		WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`, id)
	return db.Error(err)
}
