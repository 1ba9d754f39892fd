package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/local"
	"github.com/loci-memory/loci/server/apikey"
)

// keysCmd manages the API keys of a database, whether a server runs on it or not.
type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it. It is not shown again."`
	List   keysListCmd   `cmd:"" help:"List the keys."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key."`
}

type keysCreateCmd struct {
	database
	Org      string `default:"default" aliases:"organization" help:"Organization of the key, created if it is new."`
	Name     string `default:"key" help:"What the key is for."`
	Operator bool   `help:"Let the key create, rename and delete organizations over REST."`
}

// Run implements the command.
func (c keysCreateCmd) Run(ctx context.Context, s streams) error {
	return c.withKeys(ctx, s, func(keys *apikey.Store) error {
		secret, _, err := keys.Create(ctx, apikey.NewKey{Org: c.Org, Name: c.Name, Operator: c.Operator})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, secret)
		return err
	})
}

type keysListCmd struct{ database }

// Run implements the command.
func (c keysListCmd) Run(ctx context.Context, s streams) error {
	return c.withKeys(ctx, s, func(keys *apikey.Store) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tBEGINS WITH\tORGANIZATION\tNAME\tCREATED\tOPERATOR")
		for _, k := range list {
			created, operator := k.CreatedAt.UTC().Format(time.DateTime), map[bool]string{true: "yes", false: "no"}[k.Operator]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Prefix, k.Org, k.Name, created, operator)
		}
		return w.Flush()
	})
}

type keysRevokeCmd struct {
	database
	Key string `arg:"" help:"The key, its ID, or what it begins with as the list shows it."`
}

// Run implements the command.
func (c keysRevokeCmd) Run(ctx context.Context, s streams) error {
	return c.withKeys(ctx, s, func(keys *apikey.Store) error { return keys.Revoke(ctx, c.Key) })
}

// withKeys calls fn with the keys of the database: that of a running server if there is one.
func (d database) withKeys(ctx context.Context, s streams, fn func(*apikey.Store) error) (err error) {
	log, err := logger(s, "warn")
	if err != nil {
		return err
	}
	pg, err := d.runningOrOpen(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	pool, err := db.Open(ctx, pg.urls)
	if err != nil {
		return err
	}
	defer pool.Close()
	return fn(&apikey.Store{DB: pool})
}

// runningOrOpen returns the database of a running server if there is one, and else opens it.
func (d database) runningOrOpen(ctx context.Context, log *slog.Logger) (opened, error) {
	if pg, running := d.running(); running {
		return pg, nil
	}
	return d.open(ctx, log)
}

// running returns the private Postgres of a running server; ok is false if none runs.
func (d database) running() (pg opened, ok bool) {
	home, err := d.home()
	if d.external() || err != nil {
		return opened{}, false
	}
	owner, server, ok := local.Running(home)
	return opened{urls: db.URLs{Server: server, Owner: owner}, close: func() error { return nil }}, ok
}
