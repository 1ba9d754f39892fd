package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Probe stores a row of the table probes under a name, in a new session that uses the libraries which Loci's schema
// needs, and returns how long that took. The error is that of a database that cannot serve: Unavailable tells why.
func Probe(ctx context.Context, pool *pgxpool.Pool, name string) (time.Duration, error) {
	config := pool.Config().ConnConfig
	config.Tracer = nil // its OnPgError stays
	return probe(ctx, config, name)
}

func probe(ctx context.Context, config *pgx.ConnConfig, name string) (time.Duration, error) {
	began := time.Now()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the row is stored
	err = storeProbe(ctx, conn, name)
	return time.Since(began), err
}

func storeProbe(ctx context.Context, conn *pgx.Conn, name string) error {
	for _, sql := range []string{`DO $$ BEGIN NULL; END $$`, `SELECT '[1]'::vector <-> '[2]'::vector`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, `
		INSERT INTO probes (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET at = excluded.at`, name)
	return err
}

// Ping returns the error of a database that answers no new session.
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
	took, err := probe(ctx, conn.Config(), "doctor")
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
	}
	return Finding{"writes", Broken, "no row could be stored: " + err.Error(), "see what it says, and Postgres' log"}
}
