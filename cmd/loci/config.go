package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/local"
)

// secret is a setting that is never printed.
type secret string

func (secret) String() string { return "[secret]" }

func (secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// database holds the settings of the Postgres that a command works on.
type database struct {
	Home        string `env:"LOCI_HOME" help:"Private Postgres' directory (default: user data; root: /var/lib/loci)."`
	DatabaseURL secret `env:"LOCI_DATABASE_URL" help:"Postgres to use instead: postgres://user:password@host:5432/name."`
	OwnerURL    secret `name:"database-owner-url" env:"LOCI_DATABASE_OWNER_URL" help:"The same, as the schema's owner."`
	PostgresBin string `env:"LOCI_POSTGRES_BIN" help:"Directory of the Postgres binaries (default: searched for)."`
}

// opened is a database that a command works on.
type opened struct {
	urls    db.URLs
	private *local.Server // nil for LOCI_DATABASE_URL
	close   func() error

	suspects chan struct{}          // has a value after changed
	full     *atomic.Pointer[error] // why a private Postgres cannot run, while its disk is full
}

// away returns the error of a private Postgres that waits for room on its disk.
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
	default: // nobody looks, or is about to
	}
}

// startTimeout bounds the start of a private Postgres, recovery after a crash included.
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

// ping returns a function that asks in a new session whether the database answers: that a pool is busy is no outage. Of
// a private Postgres that ended it says why.
func (o opened) ping(pool *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) error {
		if o.private != nil && o.private.Err() != nil {
			return o.private.Err()
		}
		return db.Ping(ctx, pool)
	}
}

// probe stores a row in a new session of the database, and returns how long that took.
func (p *process) probe(ctx context.Context) (time.Duration, error) {
	if err := p.pg.away(); err != nil {
		return 0, err
	}
	return db.Probe(ctx, p.pool, "ready")
}

// probe returns a function that stores a row in a new session of the database.
func (o opened) probe(pool *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := db.Probe(ctx, pool, "outage")
		return err
	}
}

// external reports whether the database is one of the operator's.
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

// logger returns a logger that writes to s.err from a level on, in a format: text or json.
func logger(s streams, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, settingError{fmt.Errorf("LOCI_LOG_LEVEL is '%s'; it must be debug, info, warn or error", level)}
	}
	switch format {
	case "text":
		return slog.New(logHandler(s.err, l)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: l})), nil
	}
	return nil, settingError{fmt.Errorf("LOCI_LOG_FORMAT is '%s'; it must be text or json", format)}
}

// listenAddress checks LOCI_ADDR and reports whether only this machine can reach it.
func listenAddress(ctx context.Context, addr string) (loopback bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, settingError{fmt.Errorf("LOCI_ADDR is '%s'; it must be host:port, such as 127.0.0.1:8283", addr)}
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return false, settingError{fmt.Errorf("LOCI_ADDR is '%s'; its port must be a number from 0 to 65535", addr)}
	}
	if host == "localhost" {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}

// serverURL returns the URL of a running server from LOCI_ADDR.
func serverURL(addr string) string {
	if strings.Contains(addr, "://") {
		return strings.TrimRight(addr, "/")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
