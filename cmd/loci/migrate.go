package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// migrateCmd migrates the database, and spreads it over several machines.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Bring the database to the schema (so does migrate alone)."`
	Spread migrateSpreadCmd `cmd:"" help:"Spread the organizations over the nodes of a Citus cluster."`
}

// migrateUpCmd does what only the owner of the schema may do: it migrates, grants rights to the role that serves, and
// builds the vector indexes. It may be killed and run again.
type migrateUpCmd struct {
	database
	asked
}

func (c migrateUpCmd) Run(ctx context.Context, s streams) (err error) {
	log, err := logger(s, "warn", "text")
	if err != nil {
		return err
	}
	if c.DatabaseURL == "" { // no serving role is named
		c.DatabaseURL, c.OwnerURL = c.OwnerURL, ""
	}
	pg, err := c.runningOrOpen(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	done, err := db.Migrate(ctx, pg.urls)
	if err != nil {
		return err
	}
	if !c.JSON {
		printMigrated(s, done)
	}
	if done.Open && c.external() {
		fmt.Fprintf(s.err, "loci: the role %[1]s was created without a password, as LOCI_DATABASE_URL has none: it can "+
			"log in only where pg_hba.conf asks for none. ALTER ROLE %[1]s PASSWORD '…' sets one.\n", done.Role)
	}
	owner, err := db.Connect(ctx, cmp.Or(pg.urls.Owner, pg.urls.Server))
	if err != nil {
		return err
	}
	defer owner.Close()
	built, err := indexVectors(ctx, owner)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, map[string]any{"schema_version": done.To.Version, "version_before": done.From.Version,
			"role": done.Role, "role_created": done.Created, "rights_given": done.Granted > 0, "indexes_built": built})
	}
	_, err = fmt.Fprintf(s.out, "Indexes of vectors that were built: %d.\n", built)
	return err
}

// printMigrated prints what a migration did.
func printMigrated(s streams, done db.Migrated) {
	origin := fmt.Sprintf("it was %d", done.From.Version)
	switch done.From {
	case db.Schema{}:
		origin = "the database had none"
	case done.To:
		origin = "as before"
	}
	fmt.Fprintf(s.out, "The schema has version %d, %s.\n", done.To.Version, origin)
	if done.Created {
		fmt.Fprintf(s.out, "The role %s was created.\n", done.Role)
	}
	if done.Granted > 0 {
		fmt.Fprintf(s.out, "The role %s was given its rights.\n", done.Role)
	} else if done.Role != "" {
		fmt.Fprintf(s.out, "The role %s has its rights, as before.\n", done.Role)
	}
}

// indexVectors builds the missing vector indexes, and returns their number. A running server may build them at the same
// time.
func indexVectors(ctx context.Context, owner *pgxpool.Pool) (total int, err error) {
	store, err := files.New(owner, files.Options{})
	if err != nil {
		return 0, err
	}
	for _, vectors := range []interface {
		IndexAll(ctx context.Context, pool *pgxpool.Pool) (built int, err error)
	}{store, recall.New(owner, recall.Options{}).Queue(), archival.New(owner, archival.Options{}).Queue()} {
		built, err := vectors.IndexAll(ctx, owner)
		if err != nil {
			return total, err
		}
		total += built
	}
	return total, nil
}
