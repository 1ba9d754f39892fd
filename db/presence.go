package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Announce takes a running server's lock, which is held until conn ends, and checks the schema. It waits for a running
// migration; while the lock is held, no migration begins. *SchemaError if the schema is not this program's.
func Announce(ctx context.Context, conn *pgx.Conn, server string) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1)`, int64(lockMigrate)); err != nil {
		return fmt.Errorf("wait for a migration: %w", err)
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, hashtext($2))`, int32(LockServer), server); err != nil {
		return fmt.Errorf("take the server's lock: %w", err)
	}
	if err := CheckSchema(ctx, conn); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `SELECT pg_advisory_unlock_shared($1)`, int64(lockMigrate))
	return err
}

// AnnounceWriter tells the other servers, until conn ends, that this one has a model that writes summaries.
func AnnounceWriter(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1, 0)`, int32(LockWriter))
	return err
}

// HasWriter reports whether a server of this database has a model that writes summaries.
func HasWriter(ctx context.Context, d DB) (has bool, err error) {
	return One[bool](ctx, d, `SELECT EXISTS (
		SELECT FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
		  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`, int64(LockWriter))
}

// KeepServersOff prevents servers from starting to serve until conn ends. ErrConflict if a server works on the database
// already.
func KeepServersOff(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lockMigrate)); err != nil {
		return fmt.Errorf("wait for the migration lock: %w", err)
	}
	pids, err := serverPIDs(ctx, conn)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return Conflict("a server of Loci is at work on the database (connected as Postgres' process %s): stop every server "+
			"on it, then try again", strings.Join(pids, ", "))
	}
	return nil
}

// serverLocks returns the FROM and WHERE clauses of a query for the locks of this database's running servers.
func serverLocks() string {
	return fmt.Sprintf(`
		FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = %d::bigint::oid
		  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, LockServer)
}

// NoServer returns an SQL condition: the server with this ID no longer runs, or has lost the database, because nobody
// holds its lock. id is an SQL expression.
func NoServer(id string) string {
	return `(hashtext(` + id + `)::bigint & 4294967295)::oid NOT IN (SELECT objid` + serverLocks() + `)`
}

// serverPIDs returns the Postgres processes that hold the locks of this database's running servers.
func serverPIDs(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, _ := conn.Query(ctx, `SELECT pid::text`+serverLocks()+` ORDER BY pid`) // rows has its error, too
	pids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for running servers: %w", err)
	}
	return pids, nil
}

const (
	endTimeout = 3 * time.Second // time in which the connections of killed servers end
	endEvery   = 50 * time.Millisecond
)

// awaitNoServer waits, for at most endTimeout, until no server works on a database that is to be migrated.
func awaitNoServer(ctx context.Context, conn *pgx.Conn, m Migrated) error {
	for deadline := time.Now().Add(endTimeout); ; {
		pids, err := serverPIDs(ctx, conn)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return schemaError("%s, but a server of Loci is at work on it (connected as Postgres' process %s): "+
				"stop every server of Loci on this database, then try again", m.From.older(m.To), strings.Join(pids, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(endEvery):
		}
	}
}
