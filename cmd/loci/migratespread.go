package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/cluster"
)

// migrateSpreadCmd spreads a database over the nodes of a cluster. It may be stopped and run again.
type migrateSpreadCmd struct {
	database
	asked
	Shards int  `default:"32" help:"Parts into which the organizations are divided; a part lies on one node."`
	DryRun bool `help:"Say what would be done, and change nothing."`
}

// Run migrates the database first, so that nothing of an older schema is spread.
func (c migrateSpreadCmd) Run(ctx context.Context, s streams) error {
	if c.Shards < 1 {
		return settingError{fmt.Errorf("--shards=%d must be at least 1", c.Shards)}
	}
	if c.DatabaseURL == "" { // no serving role is named
		c.DatabaseURL, c.OwnerURL = c.OwnerURL, ""
	}
	return c.withConn(ctx, s, c.runningOrOpen, func(conn *pgx.Conn, urls db.URLs) error {
		if c.DryRun {
			if err := db.CheckSchema(ctx, conn); err != nil {
				return err
			}
			planned, err := cluster.Plan(ctx, conn)
			if err != nil {
				return err
			}
			return c.print(s, planned)
		}
		if _, err := db.Migrate(ctx, urls); err != nil {
			return err
		}
		line := newProgressLine(s.err)
		done, err := cluster.Run(ctx, conn, cluster.Options{Shards: c.Shards, Progress: func(p cluster.Report) {
			line.show(fmt.Sprintf("step %d of %d: %s", p.Done+1, p.Total, p.Step))
		}})
		line.end()
		if err != nil {
			return err
		}
		return c.print(s, done)
	})
}

func (c migrateSpreadCmd) print(s streams, r cluster.Result) error {
	if c.JSON {
		return printJSON(s, r)
	}
	var bytes int64
	number := map[cluster.Place]int{}
	for _, t := range r.Tables {
		number[t.Place]++
		if t.Place == cluster.Spread {
			bytes += t.Bytes
		}
	}
	if r.Resumed {
		fmt.Fprintln(s.out, "An earlier spreading was stopped; this one goes on where it was.")
	}
	if c.DryRun {
		for _, t := range r.Tables {
			fmt.Fprintln(s.out, describe(t))
		}
		_, err := fmt.Fprintf(s.out, "%d of %d tables would be moved. Nothing was changed.\n", r.Moved, len(r.Tables))
		return err
	}
	_, err := fmt.Fprintf(s.out, "%d tables were moved in %s: %d are spread over the nodes by organization, %d copied to "+
		"each node, and %d stay on the coordinator.\n", r.Moved, r.Took.Round(time.Second), number[cluster.Spread],
		number[cluster.Copied], number[cluster.Central])
	return err
}

// describe says in one line where a table belongs.
func describe(t cluster.Table) string {
	what := map[cluster.Place]string{cluster.Spread: "spread by organization", cluster.Copied: "copied to each node",
		cluster.Central: "stays on the coordinator"}[t.Place]
	if t.Why != "" {
		what += ": " + t.Why
	}
	if t.Done && t.Place != cluster.Central {
		what += " (done)"
	}
	return fmt.Sprintf("%s, %d KB: %s", t.Name, t.Bytes>>10, what)
}
