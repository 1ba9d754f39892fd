package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// benchOrg is the organization that all measured rows belong to: the default one.
const benchOrg = 1

// query calls run with a connection to the server's database.
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

// vectorIndexRows is the number of vectors in a space from which on the server indexes them.
const vectorIndexRows = 50_000

// indexed reports whether a table of vectors has an index for a space.
func indexed(ctx context.Context, conn *pgx.Conn, table string) (yes bool, err error) {
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_index WHERE indisvalid AND starts_with(indexrelid::regclass::text, $1))`,
		table+"_space_").Scan(&yes)
	return yes, err
}

// during calls use while a server runs, and then stops the server.
func (b *bench) during(ctx context.Context, home string, use func(*instance, *pgxpool.Pool) error,
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
		return use(s, pool)
	}(), s.stop())
}
