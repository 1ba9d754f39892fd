package main

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/tenant/apikey"
)

// serveCmd serves the REST API until a signal ends it.
type serveCmd struct {
	serving
	Demo bool `help:"Fill an empty database with a small demonstration."`

	Line *cobra.Command
}

// process is a running server.
type process struct {
	*serveCmd
	configured
	log      *slog.Logger
	out      streams
	pg       opened
	pool     *pgxpool.Pool
	owner    *pgxpool.Pool // for the role that owns the schema; nil if the server knows no such role
	parts    db.Parts      // parts of the schema at the start
	keys     *apikey.Store
	outages  *outages     // outages of the database
	metrics  net.Listener // on LOCI_METRICS_ADDR; nil if that is not set
	settings []server.Setting
	unknown  []string // variables that look like settings but are none
	jq       *jq.Runner
	id       string // id of this server among the servers of the database

	inFlight queue.InFlight
}

// warn returns a function that logs errors with a message.
func (p *process) warn(message string) func(error) {
	return func(err error) { p.log.Warn(message, "error", err) }
}

// probe stores a row over a new connection, and returns how long that took.
func (p *process) probe(ctx context.Context) (time.Duration, error) {
	if err := p.pg.away(); err != nil {
		return 0, err
	}
	return db.Probe(ctx, p.pool, "ready", p.parts)
}
