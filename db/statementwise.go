package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db/migrations"
)

// statementwise is a driver that runs the statements of a migration each on its own, in one transaction. On a database
// that is spread over a cluster, a message may have only one statement that changes a table: Citus sends the text of
// the whole message to the nodes. Each table that a migration creates is laid where it belongs at once.
type statementwise struct {
	database.Driver
	pool *sql.DB
}

// createdTable matches a statement that creates a table, and its name.
var createdTable = regexp.MustCompile(`^(?:--[^\n]*\s+)*CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_]+)`)

// Run applies a migration.
func (d *statementwise) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	ctx := context.Background() // golang-migrate has no other
	tx, err := d.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it was committed, or the error says why not
	if err := applyAll(ctx, tx, migrations.Split(string(text))); err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Detail != "" {
			return fmt.Errorf("%w: %s", pg, pg.Detail)
		}
		return err
	}
	return tx.Commit()
}

func applyAll(ctx context.Context, tx *sql.Tx, statements []string) error {
	spread, err := spreads(ctx, tx)
	if err != nil {
		return err
	}
	for _, sql := range statements {
		table := createdTable.FindStringSubmatch(sql)
		if spread && table != nil {
			err = createThere(ctx, tx, table[1], sql)
		} else {
			_, err = tx.ExecContext(ctx, sql)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spreads reports whether the tables are spread over a cluster. Then the transaction will use one connection to each
// node, so that it may change several tables.
func spreads(ctx context.Context, tx *sql.Tx) (spread bool, err error) {
	if err := tx.QueryRowContext(ctx, `SELECT to_regclass('pg_dist_partition') IS NOT NULL`).Scan(&spread); err != nil ||
		!spread {
		return false, err
	}
	if err := tx.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('agents') AND partmethod = 'h')`,
	).Scan(&spread); err != nil || !spread {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `SET LOCAL citus.multi_shard_modify_mode = sequential`)
	return true, err
}

// createThere creates a table on the coordinator, and lays it where it belongs. Its foreign keys are added afterwards,
// because the coordinator's tables may refer to none that is spread.
func createThere(ctx context.Context, tx *sql.Tx, table, statement string) error {
	const propagates = `SET LOCAL citus.enable_ddl_propagation = `
	name := pgx.Identifier{table}.Sanitize()
	var references []string
	steps := []string{propagates + `off`, statement}
	if err := execAll(ctx, tx, steps); err != nil || Shared(table) && ReferenceTables[table] == "" {
		return errors.Join(err, execAll(ctx, tx, []string{propagates + `on`}))
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'f' AND conrelid = $1::regclass ORDER BY conname`, name)
	if err != nil {
		return err
	}
	defer rows.Close()
	steps = nil
	for rows.Next() {
		var key, definition string
		if err := rows.Scan(&key, &definition); err != nil {
			return err
		}
		steps = append(steps, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s`, name, key))
		references = append(references, fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT %s %s`, name, key, definition))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	lay := fmt.Sprintf(`SELECT create_distributed_table('%s', 'org', colocate_with => 'agents')`, name)
	if Shared(table) {
		lay = fmt.Sprintf(`SELECT create_reference_table('%s')`, name)
	}
	return execAll(ctx, tx, append(append(steps, propagates+`on`, lay), references...))
}

func execAll(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.ExecContext(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
