package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	watchEvery = 5 * time.Second
	watchTime  = 30 * time.Second // for one look, which takes long on a loaded machine
)

// watch checks a Postgres until ctx ends. It returns the reason once Postgres no longer serves tests: it does not
// answer; a new connection cannot load the libraries that tests use (as after an upgrade of its packages); or it cannot
// store anything (as on a full disk).
func (p postgres) watch(ctx context.Context) error {
	for {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// look opens a connection and uses it as a test does.
func (p postgres) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, look := range []struct{ what, sql string }{
		{"load PL/pgSQL", `DO $$ BEGIN NULL; END $$`},
		{"load pgvector", `LOAD 'vector'`},
		{"store a megabyte", `CREATE TEMP TABLE room AS SELECT repeat(md5(n::text), 30) FROM generate_series(1, 1000) n`},
	} {
		if _, err := conn.Exec(ctx, look.sql); err != nil {
			return fmt.Errorf("%s: %w", look.what, err)
		}
	}
	return nil
}
