package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/local"
)

// database holds the settings of the Postgres that a command uses.
type database struct {
	Home        string `env:"LOCI_HOME" help:"Private Postgres' directory (default: user data; root: /var/lib/loci)."`
	DatabaseURL secret `env:"LOCI_DATABASE_URL" help:"Postgres to use instead: postgres://user:password@host:5432/name."`
	OwnerURL    secret `name:"database-owner-url" env:"LOCI_DATABASE_OWNER_URL" help:"The same, as the schema's owner."`
	PostgresBin string `env:"LOCI_POSTGRES_BIN" help:"Directory of the Postgres binaries (default: searched for)."`
}

// opened is an open database.
type opened struct {
	urls    db.URLs
	private *local.Server // nil if LOCI_DATABASE_URL is set
	close   func() error

	suspects chan struct{}          // changed puts a value here
	full     *atomic.Pointer[error] // why a private Postgres cannot run while its disk is full
}

// away returns the error of a private Postgres that waits for room on its disk; otherwise nil.
func (o opened) away() error {
	if o.full == nil {
		return nil
	}
	if err := o.full.Load(); err != nil {
		return *err
	}
	return nil
}

// changed says that the files of a private Postgres may have been replaced.
func (o opened) changed() {
	select {
	case o.suspects <- struct{}{}:
	default: // nobody waits, or a check is due already
	}
}

// startTimeout bounds the start of a private Postgres, including recovery after a crash.
const startTimeout = 5 * time.Minute

func (d database) open(ctx context.Context, log *slog.Logger) (opened, error) {
	if d.external() {
		return d.parse()
	}
	home, err := d.home()
	if err != nil {
		return opened{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	pg, err := local.Start(ctx, local.Options{Home: home, Bin: d.PostgresBin, Log: log})
	if err != nil {
		return opened{}, err
	}
	return opened{urls: db.URLs{Server: pg.ServingURL(), Owner: pg.URL()}, private: pg, suspects: make(chan struct{}, 1),
		full: &atomic.Pointer[error]{},
		close: func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return pg.Stop(ctx)
		}}, nil
}

// ping returns a function that checks over a new connection whether the database answers, because a busy pool is no
// outage. If a private Postgres has ended, the function returns why.
func (o opened) ping(pool *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) error {
		if o.private != nil && o.private.Err() != nil {
			return o.private.Err()
		}
		return db.Ping(ctx, pool)
	}
}

// probe returns a function that stores a row over a new connection, and checks that the parts of the schema exist.
func (o opened) probe(pool *pgxpool.Pool, parts db.Parts) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := db.Probe(ctx, pool, "outage", parts)
		return err
	}
}

// external reports whether the operator provides the database.
func (d database) external() bool { return d.DatabaseURL != "" || d.OwnerURL != "" }

// parse checks the URLs of the operator's database.
func (d database) parse() (opened, error) {
	if d.DatabaseURL == "" {
		return opened{}, settingError{errors.New("LOCI_DATABASE_OWNER_URL is set and LOCI_DATABASE_URL is not: " +
			"set LOCI_DATABASE_URL to the URL of the role that serves")}
	}
	for name, value := range map[string]secret{"URL": d.DatabaseURL, "OWNER_URL": d.OwnerURL} {
		u, err := url.Parse(string(value))
		if value != "" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql") {
			return opened{}, settingError{
				fmt.Errorf("LOCI_DATABASE_%s is not a URL such as postgres://user:password@host:5432/name", name)}
		}
	}
	return opened{urls: db.URLs{Server: string(d.DatabaseURL), Owner: string(d.OwnerURL)},
		close: func() error { return nil }}, nil
}

func (d database) home() (string, error) {
	if d.Home == "" {
		return local.DefaultHome()
	}
	return filepath.Abs(d.Home)
}

// runningOrOpen returns the database of a running server if there is one, and otherwise opens the database. It never
// creates one, because a missing database mostly means a wrong setting.
func (d database) runningOrOpen(ctx context.Context, log *slog.Logger) (opened, error) {
	if pg, running := d.running(); running {
		return pg, nil
	}
	exists, err := d.exists()
	if err != nil {
		return opened{}, err
	}
	if !exists {
		home, _ := d.home() // exists has found it
		return opened{}, settingError{fmt.Errorf("LOCI_HOME is '%s', which has no database: name the server's directory, "+
			"or run 'loci serve' or 'loci keys create', which make one", home)}
	}
	pg, err := d.open(ctx, log)
	if errors.Is(err, local.ErrInUse) {
		err = fmt.Errorf("%w. Its Postgres does not answer: the log of that server says why", err)
	}
	return pg, err
}

// exists reports whether there is a database: one that the operator provides, or a private one that was created.
func (d database) exists() (bool, error) {
	home, err := d.home()
	if err != nil || d.external() {
		return d.external(), err
	}
	exists, err := local.Exists(home)
	if errors.Is(err, fs.ErrPermission) {
		return false, settingError{fmt.Errorf("LOCI_HOME is '%s', which this user may not read (%w): run the command as the "+
			"user of the server, or as root", home, err)}
	}
	if err != nil {
		return false, settingError{fmt.Errorf("LOCI_HOME is '%s', which cannot be read: %w", home, err)}
	}
	return exists, nil
}

// running returns the private Postgres of a running server. ok is false if none runs.
func (d database) running() (pg opened, ok bool) {
	home, err := d.home()
	if d.external() || err != nil {
		return opened{}, false
	}
	owner, server, ok := local.Running(home)
	return opened{urls: db.URLs{Server: server, Owner: owner}, close: func() error { return nil }}, ok
}

// errNotStarted says why a private Postgres that does not run is not examined.
var errNotStarted = errors.New("the private Postgres of this environment does not run, and is not started for a " +
	"look, because LOCI_URL (--url) names a server")

// runningOrURL returns the operator's database, or the private Postgres of a running server. It never starts one.
// errNotStarted if there is no such database.
func (d database) runningOrURL(ctx context.Context, log *slog.Logger) (opened, error) {
	if d.external() {
		return d.open(ctx, log)
	}
	pg, running := d.running()
	if !running {
		return opened{}, errNotStarted
	}
	return pg, nil
}

// opener opens a database.
type opener func(context.Context, *slog.Logger) (opened, error)

// withConn calls fn with a connection to the database that open returns. The connection's role owns the schema.
func (database) withConn(ctx context.Context, s streams, open opener, fn func(*pgx.Conn, db.URLs) error) (err error) {
	log, err := logger(s, "warn", "text")
	if err != nil {
		return err
	}
	pg, err := open(ctx, log)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && pg.private != nil {
			err = errors.Join(err, pg.private.Err()) // if its disk is full, Postgres ends, and clients only see it gone
		}
		err = errors.Join(err, pg.close())
	}()
	conn, err := db.Dial(ctx, cmp.Or(pg.urls.Owner, pg.urls.Server))
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fn(conn, pg.urls)
}

// runningOrNew returns the database of a running server if there is one, and otherwise opens the database. It creates
// one if none exists.
func (d database) runningOrNew(ctx context.Context, log *slog.Logger) (opened, error) {
	if pg, running := d.running(); running {
		return pg, nil
	}
	return d.open(ctx, log)
}
