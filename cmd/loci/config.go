package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files/document/operator"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/rest"
)

// listenAddress checks LOCI_ADDR. loopback reports whether only this machine can reach it.
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

// configured holds what is made from a server's settings before the server opens its database.
type configured struct {
	loopback  bool // only this machine can reach the server
	counts    *metrics.Metrics
	embedder  *embedder
	reranker  *rank.Reranker // nil if no reranker is configured
	models    func(context.Context, string) *summary.Model
	answering func(handle string) (loop.Model, error)
	reader    *operator.Reader
	tracing   *tracing // nil without a collector
	upstreams model.Upstreams
}

// configure checks the settings, and makes what they configure. It returns all errors joined.
func (c *serving) configure(ctx context.Context, log *slog.Logger) (m configured, err error) {
	var errs [11]error
	m.counts = metrics.New(version())
	m.loopback, errs[0] = listenAddress(ctx, c.Addr)
	errs[1], errs[2] = c.checkBounds(), c.check()
	m.embedder, errs[3] = c.embedder(ctx, log, m.counts)
	m.models, errs[4] = c.models(m.counts)
	m.answering, errs[5] = c.answering(m.counts)
	m.reader, errs[6] = c.documentReader(ctx, c.database, log)
	m.tracing, errs[7] = newTracing(ctx, log, os.Getenv)
	m.reranker, errs[8] = c.reranker(log)
	m.upstreams, errs[9] = c.asked()
	errs[10] = c.checkGateway()
	return m, errors.Join(errs[:]...)
}

// checkBounds returns an error for a limit that would allow nothing.
func (c *serving) checkBounds() error {
	for name, bound := range map[string]int64{"LOCI_MAX_IMPORT_BYTES": c.MaxImportBytes,
		"LOCI_MAX_UPLOAD_BYTES": c.MaxUploadBytes, "LOCI_MAX_RUNS": int64(c.MaxRuns),
		"LOCI_LLM_MAX_ANSWER_BYTES": c.MaxAnswerBytes} {
		if bound < 1 {
			return settingError{fmt.Errorf("%s is %d; it must be at least 1", name, bound)}
		}
	}
	if err := rest.Origins(c.CORSOrigins).Check(); err != nil {
		return settingError{fmt.Errorf("LOCI_CORS_ORIGINS: %w", err)}
	}
	if c.MinBodyRate < 0 {
		return settingError{fmt.Errorf("LOCI_MIN_BODY_RATE is %d; it must not be negative", c.MinBodyRate)}
	}
	if c.TurnPatience < 0 {
		return settingError{fmt.Errorf("LOCI_TURN_PATIENCE is %v; it must not be negative", c.TurnPatience)}
	}
	if c.LimitPatience < 0 {
		return settingError{fmt.Errorf("LOCI_LLM_LIMIT_PATIENCE is %v; it must not be negative", c.LimitPatience)}
	}
	if err := policy.Check(c.policy()); err != nil {
		return settingError{fmt.Errorf("LOCI_POLICY: %w", err)}
	}
	return nil
}
