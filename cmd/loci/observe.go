package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/metrics"
)

// called counts a tool call.
func (p *process) called(c tool.Called) {
	outcome := metrics.OK
	switch {
	case c.Failed:
		outcome = metrics.Failed
	case c.Refused:
		outcome = metrics.Refused
	}
	p.counts.ToolCall(c.Name, outcome, c.Took)
}

// compacted logs and counts a compaction.
func (p *process) compacted(ctx context.Context, c store.Compaction) {
	method, policyName := "clipped", ""
	if c.How != nil {
		method = string(*c.How)
	}
	if c.Policy != nil {
		policyName = *c.Policy
	}
	p.log.InfoContext(ctx, "a conversation is compacted", "agent", c.AgentID, "compaction", c.ID, "trigger", c.Trigger,
		"policy", policyName, "how", method, "tokens_before", c.TokensBefore, "tokens_after", c.TokensAfter, "window",
		c.Window,
		"model_calls", c.ModelCalls, "milliseconds", c.Milliseconds)
	p.counts.Compaction(metrics.Compaction{Trigger: c.Trigger, Policy: presetOr(policyName, "other"), How: method,
		Before: c.TokensBefore, After: c.TokensAfter, Took: time.Duration(c.Milliseconds) * time.Millisecond})
}

// presetOr returns a policy's name if it is empty or a preset's, and otherwise another word. Users choose names freely,
// so other names must not become metric labels.
func presetOr(name, other string) string {
	known := func(p policy.PresetInfo) bool { return p.Name == name }
	if name == "" || slices.ContainsFunc(policy.Presets(), known) {
		return name
	}
	return other
}

// fileFailed logs and counts a file that cannot be read.
func (p *process) fileFailed(ctx context.Context, fileID, reason string) {
	p.log.InfoContext(ctx, "a file cannot be read", "file", fileID, "reason", reason)
	p.counts.FileFailed()
}

// listenMetrics listens on LOCI_METRICS_ADDR; nil if that is not set.
func (c *serving) listenMetrics(ctx context.Context) (net.Listener, error) {
	if c.MetricsAddr == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.MetricsAddr)
	if err != nil {
		return nil, settingError{fmt.Errorf("LOCI_METRICS_ADDR: %w", err)}
	}
	return listener, nil
}

// listenForMetrics serves metrics on LOCI_METRICS_ADDR until ctx ends.
func (p *process) listenForMetrics(ctx context.Context, api *server.Server) error {
	if p.metrics == nil {
		return nil
	}
	p.log.Info("serving metrics", "url", "http://"+p.metrics.Addr().String()+"/metrics")
	return p.listen(ctx, p.metrics, api.MetricsHandler())
}
