package main

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

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
}

// process is a running server.
type process struct {
	*serveCmd
	configured
	log      *slog.Logger
	out      streams
	pg       opened
	pool     *pgxpool.Pool
	owner    *pgxpool.Pool // of the role that owns the schema; nil if the server knows none
	parts    db.Parts      // of the schema, as they were at the start
	keys     *apikey.Store
	outages  *outages     // of the database
	metrics  net.Listener // of LOCI_METRICS_ADDR; nil if it is not set
	settings []server.Setting
	unknown  []string // variables that are called like settings and are none
	jq       *jq.Runner
	id       string // of this server among the servers of the database

	inFlight queue.InFlight
}

// warn returns a function that logs errors under a message.
func (p *process) warn(message string) func(error) {
	return func(err error) { p.log.Warn(message, "error", err) }
}

// probe stores a row in a new session of the database, and returns how long that took.
func (p *process) probe(ctx context.Context) (time.Duration, error) {
	if err := p.pg.away(); err != nil {
		return 0, err
	}
	return db.Probe(ctx, p.pool, "ready", p.parts)
}
