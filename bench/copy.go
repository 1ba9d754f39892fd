package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
)

// copyTables are the tables with rows that an ingestion derives from a text, and how they refer to a file. A COPY fills
// them in this order.
var copyTables = []struct{ name, of string }{
	{"file_originals", "file_key"},
	{"file_segments", "file_key"},
	{"chunks", "file_key"},
	{"chunk_vectors", "(SELECT c.file_key FROM chunks c WHERE c.org = chunk_vectors.org AND c.key = chunk_key)"},
}

// parentTables are the tables that copyTables refer to. Their few rows are copied before the clock starts.
var parentTables = []string{"folders", "embedding_spaces", "files"}

// baseline is the name of the empty database that a COPY fills, in the same cluster.
const baseline = "baseline"

// copy measures how long COPY takes to load an ingestion's rows into a database with the same schema, with all indexes
// and constraints in place. It uses binary COPY from files. Each connection loads every second file's rows, table after
// table.
func (in *ingestion) copy(ctx context.Context, conn *pgx.Conn) (duration time.Duration, spent cpu, err error) {
	dir := filepath.Join(in.work, "copy")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, cpu{}, err
	}
	defer os.RemoveAll(dir)
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+baseline+` TEMPLATE template0`); err != nil {
		return 0, cpu{}, err
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `DROP DATABASE `+baseline+` WITH (FORCE)`) }()
	address, err := in.postgres()
	if err != nil {
		return 0, cpu{}, err
	}
	target, err := databaseURL(address, baseline)
	if err != nil {
		return 0, cpu{}, err
	}
	if _, err := db.Migrate(ctx, db.URLs{Server: target}); err != nil {
		return 0, cpu{}, err
	}
	dumps, err := dumpAll(ctx, conn, dir)
	if err != nil {
		return 0, cpu{}, err
	}
	if err := loadDumps(ctx, target, append([]dump{{sql: "CHECKPOINT"}}, dumps.parents...)); err != nil {
		return 0, cpu{}, err
	}
	usedBefore := in.used()
	duration, err = fill(ctx, target, dumps)
	return duration, in.used().since(usedBefore), err
}

// databaseURL returns the address of another database of the same server.
func databaseURL(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// dump is a file with rows, and the statement that loads it.
type dump struct{ path, sql string }

// dumps are the dumps of a whole ingestion: of the parent tables, and for each connection.
type dumps struct {
	parents []dump
	parts   [copiers][]dump
}

func dumpAll(ctx context.Context, conn *pgx.Conn, dir string) (all dumps, err error) {
	for _, table := range parentTables {
		d, err := dumpRows(ctx, conn, filepath.Join(dir, table+".parent"), table, "true")
		if err != nil {
			return all, err
		}
		all.parents = append(all.parents, d)
	}
	for part := range copiers {
		for _, table := range copyTables {
			d, err := dumpRows(ctx, conn, filepath.Join(dir, fmt.Sprintf("%s.%d", table.name, part)), table.name,
				fmt.Sprintf("%s %% %d = %d", table.of, copiers, part))
			if err != nil {
				return all, err
			}
			all.parts[part] = append(all.parts[part], d)
		}
	}
	return all, nil
}

func dumpRows(ctx context.Context, conn *pgx.Conn, path, table, condition string) (dump, error) {
	var columns string
	if err := conn.QueryRow(ctx, `
		SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
		table).Scan(&columns); err != nil {
		return dump{}, err
	}
	d := dump{path, fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", table, columns)}
	file, err := os.Create(d.path)
	if err != nil {
		return dump{}, err
	}
	defer file.Close()
	_, err = conn.PgConn().CopyTo(ctx, file, fmt.Sprintf("COPY (SELECT %s FROM %s WHERE %s) TO STDOUT (FORMAT binary)",
		columns, table, condition))
	return d, err
}

// fill measures how long it takes to load everything except the parent tables.
func fill(ctx context.Context, target string, all dumps) (time.Duration, error) {
	start := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, part := range all.parts {
		group.Go(func() error { return loadDumps(groupCtx, target, part) })
	}
	err := group.Wait()
	return time.Since(start), err
}

// loadDumps loads dumps one after the other over one connection, each in its own transaction.
func loadDumps(ctx context.Context, target string, list []dump) error {
	conn, err := pgx.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, d := range list {
		if d.path == "" {
			if _, err := conn.Exec(ctx, d.sql); err != nil {
				return err
			}
			continue
		}
		file, err := os.Open(d.path)
		if err != nil {
			return err
		}
		_, err = conn.PgConn().CopyFrom(ctx, file, d.sql)
		_ = file.Close() // the file was only read
		if err != nil {
			return err
		}
	}
	return nil
}
