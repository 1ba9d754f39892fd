package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Identity is the person or thing that agents and blocks belong to. IdentifierKey is the caller's own name for it.
type Identity struct {
	Key           int64           `db:"key" json:"-"`
	ID            string          `db:"id" json:"id"`
	IdentifierKey string          `db:"identifier_key" json:"identifier_key"`
	Name          string          `db:"name" json:"name"`
	Type          string          `db:"identity_type" json:"identity_type"`
	Properties    json.RawMessage `db:"properties" json:"properties"`
	AgentIDs      []string        `db:"agent_ids" json:"agent_ids"`
	BlockIDs      []string        `db:"block_ids" json:"block_ids"`
	CreatedAt     time.Time       `db:"created_at" json:"-"`
	db.Makers
}

// identityColumns are the columns of an Identity. The organization is the statement's first argument.
const identityColumns = `i.key, i.id, i.identifier_key, i.name, i.identity_type, i.properties, i.created_at,
	i.made_by, i.changed_by,
	ARRAY(SELECT x.agent_id FROM agent_identities x WHERE x.org = $1 AND x.identity_key = i.key
	      ORDER BY x.agent_id) AS agent_ids,
	ARRAY(SELECT b.id FROM block_identities x JOIN blocks b ON b.org = x.org AND b.key = x.block_key
	      WHERE x.org = $1 AND x.identity_key = i.key ORDER BY b.id) AS block_ids`

// ChangeIdentity creates an identity, or changes the one with this id. It calls change with the current identity, and
// stores the lists that change leaves. ErrConflict if another identity has the identifier key; ErrNotFound if the lists
// name an agent or a block that does not exist.
func (s *Store) ChangeIdentity(ctx context.Context, org db.Org, id string, change func(*Identity) error) (Identity,
	error) {
	var stored Identity
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		var i Identity
		var err error
		if id != "" {
			if i, err = inTx.lockIdentity(ctx, org, id); err != nil {
				return err
			}
		}
		if err := change(&i); err != nil {
			return err
		}
		if i.Key, err = inTx.putIdentity(ctx, org, i); err != nil {
			return err
		}
		if err := inTx.linkIdentity(ctx, org, i); err != nil {
			return err
		}
		stored, err = db.One[Identity](ctx, tx, `
			SELECT `+identityColumns+` FROM identities i WHERE i.org = $1 AND i.key = $2`, org, i.Key)
		return err
	})
	return stored, err
}

// putIdentity stores an identity without its lists, and returns its key. If it has no key, it is created.
func (s *Store) putIdentity(ctx context.Context, org db.Org, i Identity) (key int64, err error) {
	args := pgx.StrictNamedArgs{"org": org, "identifier": i.IdentifierKey, "name": i.Name, "type": i.Type,
		"properties": i.Properties, "by": db.ProvenanceOf(ctx)}
	statement := `
		INSERT INTO identities (org, identifier_key, name, identity_type, properties, made_by)
		VALUES (@org, @identifier, @name, @type, @properties, @by)
		RETURNING key`
	if i.Key != 0 {
		args["key"] = i.Key
		statement = `
			UPDATE identities
			SET identifier_key = @identifier, name = @name, identity_type = @type, properties = @properties,
			    updated_at = now(), changed_by = @by
			WHERE org = @org AND key = @key
			RETURNING key`
	}
	key, err = db.One[int64](ctx, s.DB, statement, args)
	switch db.Constraint(err) {
	case "identities_identifier_key":
		err = db.Conflict("another identity has the identifier_key %q", db.Short(i.IdentifierKey))
	case "identities_lengths":
		err = db.Invalid("identifier_key and name must have from 1 to 500 characters")
	}
	return key, err
}

// linkIdentity links an identity to exactly the agents and blocks in its lists.
func (s *Store) linkIdentity(ctx context.Context, org db.Org, i Identity) error {
	for _, link := range []struct {
		what      string
		ids       []string
		drop, add string
	}{
		{"Agent", i.AgentIDs, `
			DELETE FROM agent_identities WHERE org = $1 AND identity_key = $2 AND agent_id <> ALL ($3)`, `
			WITH wanted AS (SELECT id FROM agents WHERE org = $1 AND id = ANY ($3)), added AS (
				INSERT INTO agent_identities (org, agent_id, identity_key) SELECT $1, id, $2 FROM wanted
				ON CONFLICT (org, agent_id, identity_key) DO NOTHING)
			SELECT id FROM wanted`},
		{"Block", i.BlockIDs, `
			DELETE FROM block_identities x USING blocks b
			WHERE x.org = $1 AND b.org = $1 AND x.identity_key = $2 AND b.key = x.block_key AND b.id <> ALL ($3)`, `
			WITH wanted AS (SELECT id, key FROM blocks WHERE org = $1 AND id = ANY ($3)), added AS (
				INSERT INTO block_identities (org, block_key, identity_key) SELECT $1, key, $2 FROM wanted
				ON CONFLICT (org, block_key, identity_key) DO NOTHING)
			SELECT id FROM wanted`},
	} {
		if _, err := s.DB.Exec(ctx, link.drop, org, i.Key, notNil(link.ids)); err != nil {
			return db.Error(err)
		}
		found, err := db.All[string](ctx, s.DB, link.add, org, i.Key, notNil(link.ids))
		if err != nil {
			return err
		}
		for _, id := range link.ids {
			if !slices.Contains(found, id) {
				return db.NotFound("%s with ID %s not found", link.what, db.Short(id))
			}
		}
	}
	return nil
}

// lockIdentity locks and returns an identity.
func (s *Store) lockIdentity(ctx context.Context, org db.Org, id string) (Identity, error) {
	i, err := db.One[Identity](ctx, s.DB, `
		SELECT `+identityColumns+` FROM identities i WHERE i.org = $1 AND i.id = $2 FOR UPDATE`, org, id)
	return i, orNoIdentity(err, id)
}

func orNoIdentity(err error, id string) error {
	return db.OrNotFound(err, "Identity with ID %s not found", db.Short(id))
}

// Identity returns an identity by its id.
func (s *Store) Identity(ctx context.Context, org db.Org, id string) (Identity, error) {
	i, err := db.One[Identity](ctx, s.DB, `
		SELECT `+identityColumns+` FROM identities i WHERE i.org = $1 AND i.id = $2`, org, id)
	return i, orNoIdentity(err, id)
}

// UserKey returns the key of the identity that a caller names by its id or its identifier key. ErrNotFound if there is
// none.
func (s *Store) UserKey(ctx context.Context, org db.Org, named string) (int64, error) {
	key, err := db.One[int64](ctx, s.DB, `
		SELECT key FROM identities WHERE org = $1 AND (id = $2 OR identifier_key = $2)
		ORDER BY id = $2 DESC LIMIT 1`, org, named)
	return key, db.OrNotFound(err, "There is no user %s: give the id or the identifier_key of an identity",
		db.Short(named))
}

// UserKeyOrNew is UserKey, but creates an identity of the type user with this identifier key if there is none. An id of
// no identity stays ErrNotFound.
func (s *Store) UserKeyOrNew(ctx context.Context, org db.Org, named string) (int64, error) {
	key, err := s.UserKey(ctx, org, named)
	if !errors.Is(err, db.ErrNotFound) || db.UUID("identity-", named) != uuid.Nil {
		return key, err
	}
	_, err = s.putIdentity(ctx, org, Identity{IdentifierKey: named, Name: named, Type: "user",
		Properties: json.RawMessage(`[]`)})
	if err != nil && !errors.Is(err, db.ErrConflict) { // another request created it meanwhile
		return 0, err
	}
	return s.UserKey(ctx, org, named)
}

// HasConversation reports whether an agent has a conversation with a user.
func (s *Store) HasConversation(ctx context.Context, org db.Org, agentKey, user int64) (bool, error) {
	return db.One[bool](ctx, s.DB, `
		SELECT EXISTS (
			SELECT FROM conversation_identities x JOIN conversations c ON c.org = $1 AND c.key = x.conversation_key
			WHERE x.org = $1 AND x.agent_key = $2 AND x.identity_key = $3 AND c.deleted_at IS NULL)`, org, agentKey, user)
}

// IdentityByKey returns an identity by its key. ErrNotFound if there is none.
func (s *Store) IdentityByKey(ctx context.Context, org db.Org, key int64) (Identity, error) {
	return db.One[Identity](ctx, s.DB, `
		SELECT `+identityColumns+` FROM identities i WHERE i.org = $1 AND i.key = $2`, org, key)
}

// IdentityFilter narrows a list of identities; empty fields do not.
type IdentityFilter struct{ Contains, IdentifierKey, Type string }

const filteredIdentities = ` FROM identities i
	WHERE i.org = @org AND @identifier IN ('', i.identifier_key) AND @type IN ('', i.identity_type)
	  AND (@contains = '' OR strpos(lower(i.name), lower(@contains)) > 0)`

func (f IdentityFilter) args(org db.Org) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "identifier": f.IdentifierKey, "type": f.Type, "contains": f.Contains}
}

// Identities lists the identities that match a filter.
func (s *Store) Identities(ctx context.Context, org db.Org, f IdentityFilter, p db.Page) ([]Identity, error) {
	return db.List[Identity](ctx, s.DB, p, `SELECT `+strings.ReplaceAll(identityColumns, "$1", "@org")+
		filteredIdentities, f.args(org))
}

// CountIdentities counts the identities that match a filter.
func (s *Store) CountIdentities(ctx context.Context, org db.Org, f IdentityFilter) (int, error) {
	return db.One[int](ctx, s.DB, `SELECT count(*)`+filteredIdentities, f.args(org))
}

// DeleteIdentity deletes an identity, with its copies of blocks and its memory files. Its agents stay, and so do the
// blocks that were given to it. ErrConflict if it has conversations, archives or folders, which would be nobody's
// without it.
func (s *Store) DeleteIdentity(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		i, err := s.With(tx).lockIdentity(ctx, org, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE folders SET user_key = NULL WHERE org = $1 AND user_key = $2 AND deleted_at IS NOT NULL`, org,
			i.Key); err != nil {
			return err
		}
		type owns struct {
			Conversations int `db:"conversations"`
			Archives      int `db:"archives"`
			Folders       int `db:"folders"`
		}
		o, err := db.One[owns](ctx, tx, `
			SELECT (SELECT count(*) FROM conversation_identities x
			        JOIN conversations c ON c.org = $1 AND c.key = x.conversation_key
			        WHERE x.org = $1 AND x.identity_key = $2
			          AND (c.deleted_at IS NULL OR c.reset_at IS NOT NULL)) AS conversations,
			       (SELECT count(*) FROM archives c WHERE c.org = $1 AND c.user_key = $2) AS archives,
			       (SELECT count(*) FROM folders d WHERE d.org = $1 AND d.user_key = $2) AS folders`, org, i.Key)
		if err != nil {
			return err
		}
		if o.Conversations+o.Archives+o.Folders > 0 {
			return db.Conflict("identity %s has %d conversations, %d archives and %d folders, which everybody would read "+
				"without it: delete them first, or erase all that is the user's (DELETE /v1/identities/%[1]s/memory)", i.ID,
				o.Conversations, o.Archives, o.Folders)
		}
		inTx := s.With(tx)
		if _, err := inTx.Blocks.DeleteOfUser(ctx, org, i.Key); err != nil {
			return err
		}
		if _, err := inTx.MemoryFiles.DeleteOfUser(ctx, org, i.Key); err != nil {
			return err
		}
		if err := inTx.Files.ForgetOpened(ctx, org, i.Key); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "identities", `r.key = $2`, org, i.Key)
	})
}

// IdentitiesOf returns an agent's identities, the oldest first.
func (s *Store) IdentitiesOf(ctx context.Context, org db.Org, agentID string) ([]Identity, error) {
	return db.All[Identity](ctx, s.DB, `
		SELECT `+identityColumns+`
		FROM agent_identities x JOIN identities i ON i.org = x.org AND i.key = x.identity_key
		WHERE x.org = $1 AND x.agent_id = $2
		ORDER BY i.key`, org, agentID)
}

// setIdentities makes these identities the agent's only ones. ErrNotFound if one does not exist.
func (s *Store) setIdentities(ctx context.Context, org db.Org, agentID string, ids []string) error {
	if _, err := s.DB.Exec(ctx, `
		DELETE FROM agent_identities x USING identities i
		WHERE x.org = $1 AND i.org = $1 AND x.agent_id = $2 AND i.key = x.identity_key AND i.id <> ALL ($3)`,
		org, agentID, notNil(ids)); err != nil {
		return db.Error(err)
	}
	found, err := db.All[string](ctx, s.DB, `
		WITH wanted AS (SELECT id, key FROM identities WHERE org = $1 AND id = ANY ($3)), added AS (
			INSERT INTO agent_identities (org, agent_id, identity_key) SELECT $1, $2, key FROM wanted
			ON CONFLICT (org, agent_id, identity_key) DO NOTHING)
		SELECT id FROM wanted`, org, agentID, notNil(ids))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(found, id) {
			return orNoIdentity(db.ErrNotFound, id)
		}
	}
	return nil
}
