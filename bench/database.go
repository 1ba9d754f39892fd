package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// benchOrg is the organization that all rows of the measurements belong to: the default one.
const benchOrg = 1

// query runs a function on a connection to the server's database.
func (s *instance) query(ctx context.Context, run func(*pgx.Conn) error) error {
	url, err := s.postgres()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(run(conn), conn.Close(context.WithoutCancel(ctx)))
}

// vectorIndexRows is how many vectors a space has that the server indexes.
const vectorIndexRows = 50_000

// indexed reports whether a table of vectors has an index of a space.
func indexed(ctx context.Context, conn *pgx.Conn, table string) (yes bool, err error) {
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_index WHERE indisvalid AND starts_with(indexrelid::regclass::text, $1))`,
		table+"_space_").Scan(&yes)
	return yes, err
}

// during does something while a server runs, which ends then.
func (b *bench) during(ctx context.Context, home string, do func(*instance, *pgxpool.Pool) error,
	settings ...string) error {
	s, _, err := b.serve(ctx, home, settings...)
	if err != nil {
		return err
	}
	return errors.Join(func() error {
		url, err := s.postgres()
		if err != nil {
			return err
		}
		pool, err := db.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		return do(s, pool)
	}(), s.stop())
}
