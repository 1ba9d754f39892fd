package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Restore verifies a file and then loads it, as the owner of the schema, into a database with the schema and no rows.
// It loads everything or nothing; before it commits, it checks that the tables have the file's checksums. ErrInvalid if
// the file is not a whole backup, or has another schema than the database; ErrConflict if the database has rows or is
// spread over a cluster, or if a server works on it.
func Restore(ctx context.Context, conn *pgx.Conn, from io.ReadSeeker, progress func(table string, bytes int64)) (
	m Manifest, err error) {
	if m, err = Verify(from, progress); err != nil {
		return m, err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return m, err
	}
	if err := db.KeepServersOff(ctx, conn); err != nil {
		return m, err
	}
	if err := m.checkSchema(ctx, conn); err != nil {
		return m, err
	}
	if spread, err := db.IsSpread(ctx, conn); err != nil {
		return m, err
	} else if spread {
		return m, db.Conflict("the tables of the database are spread over a cluster already: restore into a new database, " +
			"on its coordinator, and run 'loci migrate spread' afterwards")
	}
	f, err := open(from)
	if err != nil {
		return m, err
	}
	defer f.close()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		l := &loading{tx: tx, file: f, manifest: m, progress: progress}
		for _, step := range []func(context.Context) error{l.prepare, l.load, l.finish, l.compare, l.convert} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	_, err = conn.Exec(ctx, `ANALYZE`)
	return m, err
}

// checkSchema returns ErrInvalid unless the file has the database's schema.
func (m Manifest) checkSchema(ctx context.Context, conn *pgx.Conn) error {
	has, err := db.SchemaOf(ctx, conn)
	if err != nil {
		return err
	}
	return m.fits(has, "the database has")
}

// CheckProgram returns ErrInvalid unless the file has the schema of this program.
func (h Header) CheckProgram() error {
	makes, err := db.ProgramSchema()
	if err != nil {
		return err
	}
	return h.fits(makes, "this program makes")
}

// fits returns ErrInvalid unless the file has the given schema. has introduces that schema in the error: "the database
// has".
func (h Header) fits(schema db.Schema, has string) error {
	if schema == h.Schema || h.isFormer() && schema.Jobs == h.Schema.Jobs {
		return nil
	}
	return db.Invalid("the backup is of Loci %s with the schema %d, and %s the schema %d: restore it with that version "+
		"into a new database, and then start this one, which upgrades it", h.Loci, h.Schema.Version, has, schema.Version)
}

// loading is a restore inside its transaction.
type loading struct {
	tx       pgx.Tx
	file     *file
	manifest Manifest
	progress func(string, int64)

	keys []foreignKey
}

// foreignKey is a constraint that is dropped while rows are loaded, because they come in any order.
type foreignKey struct {
	Table      string `db:"table"`
	Name       string `db:"name"`
	Definition string `db:"definition"`
}

// prepare checks that the database is empty, and lets it accept rows in any order.
func (l *loading) prepare(ctx context.Context) error {
	if err := settle(ctx, l.tx); err != nil {
		return err
	}
	if err := l.takeFormer(ctx); err != nil {
		return err
	}
	existing, err := tables(ctx, l.tx)
	if err != nil {
		return err
	}
	added, former := 0, l.manifest.isFormer() // later migrations add tables and columns
	for _, t := range existing {
		i := slices.IndexFunc(l.manifest.Tables, func(listed Table) bool { return listed.Name == t.Name })
		if former && i < 0 {
			added++
		} else if i < 0 || !former && !sameNames(l.manifest.Tables[i].Columns, t.Columns) ||
			!containsAll(t.Columns, l.manifest.Tables[i].Columns) {
			return db.Invalid("the backup has other columns of %s than the database", t.Name)
		}
		if err := l.checkEmpty(ctx, t.Name); err != nil {
			return err
		}
	}
	if len(existing)-added != len(l.manifest.Tables) {
		return db.Invalid("the backup has %d tables, and the database %d", len(l.manifest.Tables), len(existing))
	}
	l.keys, err = db.All[foreignKey](ctx, l.tx, `
		SELECT conrelid::regclass::text AS table, conname::text AS name, pg_get_constraintdef(oid) AS definition
		FROM pg_constraint
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0
		ORDER BY 1, 2`)
	if err != nil {
		return err
	}
	for _, k := range l.keys {
		if _, err := l.tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s`, k.Table, quoted(k.Name))); err != nil {
			return err
		}
	}
	_, err = l.tx.Exec(ctx, `DELETE FROM organizations`)
	return err
}

// sameNames reports whether two lists have the same names, in any order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// containsAll reports whether a list has all names of another.
func containsAll(list, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// checkEmpty returns ErrConflict if a table has rows. It accepts the one organization that migrations create.
func (l *loading) checkEmpty(ctx context.Context, table string) error {
	most := 0
	if table == "organizations" {
		most = 1
	}
	rows, err := db.One[int](ctx, l.tx, `SELECT count(*) FROM (SELECT FROM `+quoted(table)+` LIMIT 2) rows`)
	if err == nil && rows > most {
		err = db.Conflict("the database is not empty: %s has rows. Restore into a new database, which has none", table)
	}
	return err
}

func (l *loading) load(ctx context.Context) error {
	for t := l.file.table(); t != ""; t = l.file.table() {
		i := slices.IndexFunc(l.manifest.Tables, func(listed Table) bool { return listed.Name == t })
		_, err := l.tx.Conn().PgConn().CopyFrom(ctx, &rows{file: l.file, table: t},
			fmt.Sprintf(`COPY %s (%s) FROM STDIN`, quoted(t), quoted(l.manifest.Tables[i].Columns...)))
		if err != nil {
			return fmt.Errorf("load %s: %w", t, err)
		}
		if l.progress != nil {
			l.progress(t, l.manifest.Tables[i].Bytes)
		}
	}
	return nil
}

// finish restores constraints and sequences.
func (l *loading) finish(ctx context.Context) error {
	for _, k := range l.keys {
		_, err := l.tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT %s %s`, k.Table, quoted(k.Name), k.Definition))
		if err != nil {
			return fmt.Errorf("check %s of %s: %w", k.Name, k.Table, err)
		}
	}
	for name, last := range l.manifest.Sequences {
		if _, err := l.tx.Exec(ctx, `SELECT setval($1::text::regclass, $2)`, quoted(name), last); err != nil {
			return err
		}
	}
	return nil
}

// compare returns an error unless the tables have the file's checksums.
func (l *loading) compare(ctx context.Context) error {
	for _, t := range l.manifest.Tables {
		sum := sha256.New()
		if _, err := copyOut(ctx, l.tx, t, sum); err != nil {
			return fmt.Errorf("read %s again: %w", t.Name, err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != t.SHA256 {
			return fmt.Errorf("the table %s has the SHA-256 %s after it was restored, and %s in the backup: nothing was "+
				"restored", t.Name, got, t.SHA256)
		}
	}
	return nil
}
