package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Organization describes an organization.
type Organization struct {
	ID        string     `db:"id" json:"id"` // org- and a UUID
	Org       db.Org     `db:"key" json:"-"`
	Name      string     `db:"name" json:"name"`
	CreatedAt time.Time  `db:"created_at" json:"created_at"`
	DeletedAt *time.Time `db:"deleted_at" json:"deleted_at"` // deleted; its rows are being removed since then
}

const orgColumns = `id, org AS key, name, created_at, deleted_at`

// CreateOrg creates an organization. It trims the name, reduces white space to single spaces, and brings it to
// Unicode's form NFC. ErrInvalid if the name is not allowed; ErrConflict if another organization has it.
func (s *Store) CreateOrg(ctx context.Context, name string) (Organization, error) {
	if err := CheckOrgName(name); err != nil {
		return Organization{}, err
	}
	name = plain(name)
	o, err := db.One[Organization](ctx, s.DB, `INSERT INTO organizations (name) VALUES ($1) RETURNING `+orgColumns, name)
	return o, takenName(err, name)
}

// RestoreOrg returns the organization with an id, and creates it if there is none. If another organization has its
// name, it gets the first free name of "name (2)", "name (3)", …. ErrInvalid if the name is not allowed; ErrConflict if
// the organization is deleted.
func (s *Store) RestoreOrg(ctx context.Context, id, name string, createdAt time.Time) (o Organization, created bool,
	err error) {
	o, err = db.One[Organization](ctx, s.DB, `SELECT `+orgColumns+` FROM organizations WHERE id = $1`, id)
	if err == nil && o.DeletedAt != nil {
		return o, false, db.Conflict("the organization %s is deleted; try again when its data is deleted too", id)
	}
	if !errors.Is(err, db.ErrNotFound) {
		return o, false, err
	}
	for n := 1; ; n++ {
		free := plain(name)
		if n > 1 {
			free = fmt.Sprintf("%s (%d)", free, n)
		}
		if err := CheckOrgName(free); err != nil {
			return o, false, err
		}
		o, err = db.One[Organization](ctx, s.DB, `
			INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING
			RETURNING `+orgColumns, id, free, createdAt)
		if !errors.Is(err, db.ErrNotFound) {
			return o, true, err
		}
	}
}

// takenName turns an ErrConflict of a new name into an error that says so.
func takenName(err error, name string) error {
	if errors.Is(err, db.ErrConflict) {
		return db.Conflict("there is an organization %q already; choose another name", name)
	}
	return err
}

// Orgs returns a page of the organizations that are not deleted. If all is false, it returns only the organization own.
func (s *Store) Orgs(ctx context.Context, own db.Org, all bool, p db.Page) ([]Organization, error) {
	return db.List[Organization](ctx, s.DB, p, `
		SELECT `+orgColumns+` FROM organizations WHERE deleted_at IS NULL AND (@all OR org = @org)`,
		pgx.StrictNamedArgs{"org": own, "all": all})
}

// AllOrgs returns every organization, oldest first, including deleted ones that still have rows.
func (s *Store) AllOrgs(ctx context.Context) ([]Organization, error) {
	return db.All[Organization](ctx, s.DB, `SELECT `+orgColumns+` FROM organizations ORDER BY created_at, org`)
}

// Organization returns an organization by its id or name. ErrNotFound if there is none or it is deleted.
func (s *Store) Organization(ctx context.Context, idOrName string) (Organization, error) {
	o, err := db.One[Organization](ctx, s.DB, `
		SELECT `+orgColumns+` FROM organizations
		WHERE (id = $1 OR name IN ($1, $2)) AND deleted_at IS NULL
		ORDER BY (id = $1) DESC, (name = $1) DESC
		LIMIT 1`, idOrName, plain(idOrName))
	return o, db.OrNotFound(err, "Organization with ID %s not found", idOrName)
}

// RenameOrg changes an organization's name. ErrNotFound if the organization does not exist; ErrInvalid if it is the
// default organization or the name is not allowed; ErrConflict if another organization has the name.
func (s *Store) RenameOrg(ctx context.Context, idOrName, name string) (Organization, error) {
	o, err := s.changeable(ctx, idOrName, "renamed")
	if err == nil {
		err = CheckOrgName(name)
	}
	if err != nil {
		return o, err
	}
	name = plain(name)
	o, err = db.One[Organization](ctx, s.DB, `
		UPDATE organizations SET name = $2 WHERE org = $1 AND deleted_at IS NULL RETURNING `+orgColumns, o.Org, name)
	return o, db.OrNotFound(takenName(err, name), "Organization with ID %s not found", idOrName)
}

// changeable returns an organization by its id or name. ErrInvalid for the default organization.
func (s *Store) changeable(ctx context.Context, idOrName, change string) (Organization, error) {
	o, err := s.Organization(ctx, idOrName)
	if err == nil && o.Name == DefaultOrg {
		err = db.Invalid("the organization %s cannot be %s: a server without keys and LOCI_API_KEY belong to it",
			DefaultOrg, change)
	}
	return o, err
}

// DeleteOrg deletes an organization. Its keys are gone at once, no request is served for it any more, and its name is
// free. Clear deletes its rows later. ErrNotFound if it does not exist; ErrInvalid if it is the default organization.
func (s *Store) DeleteOrg(ctx context.Context, idOrName string) (Organization, error) {
	o, err := s.changeable(ctx, idOrName, "deleted")
	if err != nil {
		return o, err
	}
	var deleted Organization
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if deleted, err = db.One[Organization](ctx, tx, `
			UPDATE organizations SET deleted_at = now() WHERE org = $1 AND deleted_at IS NULL RETURNING `+orgColumns,
			o.Org); err != nil {
			return err
		}
		sums, err := db.All[[]byte](ctx, tx, `DELETE FROM api_keys WHERE org = $1 RETURNING sha256`, o.Org)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO revoked_keys (sha256) SELECT unnest($1::bytea[]) ON CONFLICT DO NOTHING`, sums); err != nil {
			return err
		}
		return keepPlace(ctx, tx, deleted)
	})
	return deleted, db.OrNotFound(err, "Organization with ID %s not found", idOrName)
}

// keepPlace keeps the place of a deleted organization in the lists of the operator, who belongs to the default
// organization.
func keepPlace(ctx context.Context, tx pgx.Tx, o Organization) error {
	orgs, err := db.All[db.Org](ctx, tx, `
		SELECT org FROM organizations WHERE name = $1 AND deleted_at IS NULL`, DefaultOrg)
	if err != nil || len(orgs) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO deleted_places (org, id, created_at, key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		orgs[0], o.ID, o.CreatedAt, o.Org)
	return err
}

// Clear deletes the rows of deleted organizations in small batches. If one organization fails, it goes on with the
// others. It returns how many organizations still have rows, because jobs of theirs are running.
func (s *Store) Clear(
	ctx context.Context, progress func(o Organization, table string, rows int),
) (left int, err error) {
	deleted, err := db.All[Organization](ctx, s.DB, `
		SELECT `+orgColumns+` FROM organizations WHERE deleted_at IS NOT NULL ORDER BY deleted_at, org`)
	for _, o := range deleted {
		purge := db.Purge{DB: s.DB, Org: o.Org, Progress: func(table string, rows int) { progress(o, table, rows) }}
		done, failed := purge.Run(ctx)
		if !done {
			left++
		}
		err = errors.Join(err, failed)
	}
	return left, err
}
