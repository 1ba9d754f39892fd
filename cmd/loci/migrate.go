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

// migrateCmd does for a database what only the owner of its schema may do: it migrates, gives the role that serves its
// rights, and builds the indexes of vectors. It may be killed and run again.
type migrateCmd struct{ database }

// Run implements the command.
func (c migrateCmd) Run(ctx context.Context, s streams) (err error) {
	log, err := logger(s, "warn")
	if err != nil {
		return err
	}
	if c.DatabaseURL == "" { // no role that serves is named
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
	printMigrated(s, done)
	owner, err := db.Connect(ctx, cmp.Or(pg.urls.Owner, pg.urls.Server))
	if err != nil {
		return err
	}
	defer owner.Close()
	return indexVectors(ctx, s, owner)
}

// printMigrated prints what a migration did.
func printMigrated(s streams, done db.Migrated) {
	before := fmt.Sprintf("it was %d", done.From.Version)
	switch done.From {
	case db.Schema{}:
		before = "the database had none"
	case done.To:
		before = "as before"
	}
	fmt.Fprintf(s.out, "The schema has version %d, %s.\n", done.To.Version, before)
	if done.Created {
		fmt.Fprintf(s.out, "The role %s was created.\n", done.Role)
	}
	if done.Granted > 0 {
		fmt.Fprintf(s.out, "The role %s was given its rights.\n", done.Role)
	} else if done.Role != "" {
		fmt.Fprintf(s.out, "The role %s has its rights, as before.\n", done.Role)
	}
}

// indexVectors builds the missing indexes of vectors. A server that runs may build them at the same time.
func indexVectors(ctx context.Context, s streams, owner *pgxpool.Pool) error {
	store, err := files.New(owner, files.Options{})
	if err != nil {
		return err
	}
	total := 0
	for _, vectors := range []interface {
		IndexAll(ctx context.Context, pool *pgxpool.Pool) (built int, err error)
	}{store, recall.New(owner, recall.Options{}).Queue(), archival.New(owner, archival.Options{}).Queue()} {
		built, err := vectors.IndexAll(ctx, owner)
		if err != nil {
			return err
		}
		total += built
	}
	fmt.Fprintf(s.out, "Indexes of vectors that were built: %d.\n", total)
	return nil
}
