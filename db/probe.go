package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Probe tests whether the database can serve, and returns how long that took. In a new session it uses the libraries
// that Loci's schema needs, takes the locks that a message needs, and stores a row under name in the table probes. If
// parts is not nil, it first checks that the schema has these parts and this program's version. Unavailable tells why
// the database cannot serve. ErrUnconfirmed if the database may have stored the row but did not confirm it.
func Probe(ctx context.Context, pool *pgxpool.Pool, name string, parts Parts) (time.Duration, error) {
	config := pool.Config().ConnConfig
	config.Tracer = nil // its OnPgError stays
	return probe(ctx, config, name, parts)
}

func probe(ctx context.Context, config *pgx.ConnConfig, name string, parts Parts) (time.Duration, error) {
	began := time.Now()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the row is stored
	// This comes first, because a row stored while a backup is restored may contradict the backup.
	if parts != nil {
		if err := parts.check(ctx, conn); err != nil {
			return 0, err
		}
	}
	err = storeProbe(ctx, conn, name)
	return time.Since(began), err
}

func storeProbe(ctx context.Context, conn *pgx.Conn, name string) error {
	for _, sql := range []string{`DO $$ BEGIN NULL; END $$`, `SELECT '[1]'::vector <-> '[2]'::vector`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `
		INSERT INTO probes (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET at = excluded.at`, name); err != nil {
		return unconfirmed(err)
	}
	return lockTables(ctx, conn)
}

// eachMessage lists the tables in which an agent's message is stored, with its run and its prompt.
var eachMessage = []string{"organizations", "agents", "agent_heads", "events", "conversations", "messages",
	"message_pieces", "tool_calls", "runs", "steps", "run_items", "prompts", "prompt_parts", "stored_usage", "river_job"}

// probeLock is how long a probe waits for another session's lock on a table.
const probeLock = 500 * time.Millisecond

// lockTables takes and frees the locks that storing a message needs, in a cluster the coordinator's alone: if another
// node is away, the server still serves the organizations on others. IsLocked recognizes the error if another session
// holds a lock that blocks every message.
func lockTables(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(`
			SET LOCAL lock_timeout = %d; SET LOCAL citus.enable_ddl_propagation = off`, probeLock.Milliseconds()))
		if err == nil {
			_, err = tx.Exec(ctx, `LOCK TABLE `+strings.Join(eachMessage, ", ")+` IN ROW EXCLUSIVE MODE`)
		}
		return err
	})
}

// whoLocks says which sessions keep messages from being stored.
func whoLocks(ctx context.Context, conn *pgx.Conn) string {
	who, err := One[string](ctx, conn, `
		SELECT coalesce(string_agg(DISTINCT format('process %s of Postgres locks %s', pid, relation::regclass), ', '), '')
		FROM pg_locks
		WHERE locktype = 'relation' AND granted AND relation = ANY ($1::text[]::regclass[])
		  AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`, eachMessage)
	if err != nil || who == "" {
		return "another session holds a lock"
	}
	return who
}

// Ping opens a new session and returns the error if the database does not answer.
func Ping(ctx context.Context, pool *pgxpool.Pool) error {
	config := pool.Config().ConnConfig
	config.Tracer = nil
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was asked
	return conn.Ping(ctx)
}

// examineWrites says whether the database stores changes.
func examineWrites(ctx context.Context, conn *pgx.Conn) Finding {
	took, err := probe(ctx, conn.Config(), "doctor", nil)
	switch {
	case err == nil:
		return Finding{"writes", Well, fmt.Sprintf("a new session stored a row in %d ms", took.Milliseconds()), ""}
	case FilesChanged(err):
		return Finding{"writes", Broken, "new sessions cannot use Postgres' own files: " + err.Error(),
			"restart Postgres: its package was upgraded while it ran"}
	case IsReadOnly(err):
		return Finding{"writes", Broken, "the database is read-only: " + err.Error(),
			"name the primary in LOCI_DATABASE_URL, or make the database writable"}
	case IsFull(err):
		return Finding{"writes", Broken, "nothing can be stored: " + err.Error(), "make room on Postgres' disk"}
	case IsLocked(err):
		return Finding{"writes", Broken, "no message can be stored: " + whoLocks(ctx, conn),
			"wait for the end of what it does, or end it: SELECT pg_terminate_backend(PROCESS)"}
	}
	return Finding{"writes", Broken, "no row could be stored: " + err.Error(), "see what it says, and Postgres' log"}
}
