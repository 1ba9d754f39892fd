// Package userdata shows, exports and changes everything that is one user's own, in all memories.
//
// Its files, in order: userdata.go lists and counts; kinds.go has the statements; export.go writes all of it into one
// file; change.go changes items.
package userdata

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// Store reads and changes the memory of users.
type Store struct {
	DB          db.DB
	Recall      *recall.Store
	Archival    *archival.Store
	MemoryFiles *memoryfile.Store
}

// Kept is one thing that is a user's own.
type Kept struct {
	Kind      string    `db:"kind" json:"kind" doc:"What it is, such as passage or message."`
	ID        string    `db:"id" json:"id"`
	Of        *string   `db:"of" json:"of" doc:"Id of what it belongs to, such as an archive."`
	Name      *string   `db:"name" json:"name" doc:"Its name, label, path, or a message's role."`
	Text      *string   `db:"text" json:"text" doc:"The first 1,000 characters of its text."`
	Chars     int       `db:"chars" json:"chars" doc:"The characters of its whole text."`
	Deleted   bool      `db:"deleted" json:"deleted" doc:"It is hidden from every read, and is kept."`
	CreatedAt time.Time `db:"created_at" json:"created_at"`
}

// Page asks for some of a user's items.
type Page struct {
	Kind  string // one of Kinds; empty: all
	After string // UserMemory.Next of the page before; empty: the first page
	Limit int
}

// UserMemory is what a user has: how many items of each kind, and a page of them.
type UserMemory struct {
	IdentityID    string         `json:"identity_id" doc:"The user's."`
	IdentifierKey string         `json:"identifier_key"`
	Counts        map[string]int `json:"counts" doc:"How many items there are, by kind."`
	Items         []Kept         `json:"items" doc:"By kind, the oldest first."`
	Next          *string        `json:"next" doc:"The cursor of the next page; null on the last."`
}

// user is the identity whose data it is.
type user struct {
	Key           int64  `db:"key" json:"-"`
	ID            string `db:"id" json:"identity_id"`
	IdentifierKey string `db:"identifier_key" json:"identifier_key"`

	Name       string          `db:"name" json:"name"`
	Type       string          `db:"identity_type" json:"identity_type"`
	Properties json.RawMessage `db:"properties" json:"properties"`
	CreatedAt  time.Time       `db:"created_at" json:"created_at"`
}

func (s *Store) user(ctx context.Context, org db.Org, identity string) (user, error) {
	u, err := db.One[user](ctx, s.DB, `
		SELECT key, id, identifier_key, name, identity_type, properties, created_at FROM identities
		WHERE org = $1 AND id = $2`, org, identity)
	return u, db.OrNotFound(err, "Identity with ID %s not found", db.Short(identity))
}

// cursor is the place of an item among a user's items. It stays valid when items are added or deleted.
type cursor struct {
	Kind string    `json:"k"`
	At   time.Time `json:"t"`
	ID   string    `json:"i"`
}

func (c cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // it is a struct of two texts and a time
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func cursorOf(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || !slices.Contains(Kinds(), c.Kind) {
		return c, db.Invalid("after is %s; it must be the next of a page of this user's memory", db.Short(text))
	}
	return c, nil
}

// Memory returns what a user has. ErrNotFound if there is no such identity; ErrInvalid if the page's kind or cursor is
// wrong.
func (s *Store) Memory(ctx context.Context, org db.Org, identity string, p Page) (UserMemory, error) {
	u, err := s.user(ctx, org, identity)
	if err != nil {
		return UserMemory{}, err
	}
	if p.Kind != "" && !slices.Contains(Kinds(), p.Kind) {
		return UserMemory{}, db.Invalid("kind is %s; it must be one of %s", db.Short(p.Kind), strings.Join(Kinds(), ", "))
	}
	after, err := cursorOf(p.After)
	if err != nil {
		return UserMemory{}, err
	}
	m := UserMemory{IdentityID: u.ID, IdentifierKey: u.IdentifierKey, Items: []Kept{}}
	if m.Counts, err = s.counts(ctx, org, u.Key); err != nil {
		return m, err
	}
	for _, k := range kinds {
		if len(m.Items) > p.Limit || p.Kind != "" && k.name != p.Kind || k.isBefore(after.Kind) {
			continue
		}
		items, err := s.items(ctx, org, u.Key, part{k, after, p.Limit + 1 - len(m.Items)})
		if err != nil {
			return m, err
		}
		m.Items = append(m.Items, items...)
	}
	if len(m.Items) > p.Limit {
		m.Items = m.Items[:p.Limit]
		last := m.Items[p.Limit-1]
		m.Next = new(cursor{last.Kind, last.CreatedAt, last.ID}.String())
	}
	return m, nil
}

// counts maps kind → how many items of it a user has.
func (s *Store) counts(ctx context.Context, org db.Org, user int64) (map[string]int, error) {
	type count struct {
		Kind string `db:"kind"`
		N    int    `db:"n"`
	}
	var each []string
	for _, k := range kinds {
		each = append(each, `SELECT '`+k.name+`' AS kind, count(*) AS n FROM (`+k.sql+`) i`)
	}
	list, err := db.All[count](ctx, s.DB, strings.Join(each, ` UNION ALL `), pgx.StrictNamedArgs{"org": org, "user": user})
	counts := map[string]int{}
	for _, c := range list {
		counts[c.Kind] = c.N
	}
	return counts, err
}

// shownChars is how many characters of a text a list shows.
const shownChars = 1_000

// part selects up to limit items of a kind, after a cursor if it is of this kind.
type part struct {
	kind  kind
	after cursor
	limit int
}

func (s *Store) items(ctx context.Context, org db.Org, user int64, p part) ([]Kept, error) {
	k, after := p.kind, p.after
	args := pgx.StrictNamedArgs{"org": org, "user": user, "limit": p.limit, "shown": shownChars}
	where := ""
	if after.Kind == k.name {
		where, args["at"], args["id"] = ` WHERE (i.created_at, i.id) > (@at, @id)`, after.At, after.ID
	}
	return db.All[Kept](ctx, s.DB, `
		SELECT '`+k.name+`' AS kind, i.id, i.of, i.name, left(i.text, @shown::integer) AS text,
		       coalesce(char_length(i.text), 0) AS chars, i.deleted, i.created_at
		FROM (`+k.sql+`) i`+where+`
		ORDER BY i.created_at, i.id
		LIMIT @limit`, args)
}
