package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	smallTenants  = 100
	tenantClients = 2 // all small tenants together
	// requestEvery is the time between two requests of such a client. So a small tenant sends a request every two seconds.
	requestEvery = 40 * time.Millisecond
	floodBegins  = time.Second // from the start of a flood to the start of the measurement
)

// tenant is an organization with an agent that has a folder.
type tenant struct {
	client
	agent, folder string
}

// circumstance is a situation in which the small tenants are measured: with or without a flood.
type circumstance struct {
	flood   *flood // nil without a flood
	phases  []map[string][]float64
	tallies []floodTally
}

// tenants measures how long small tenants wait for an append, a prompt and a search: alone, while another tenant floods
// their server, and while the same flood goes to another server on this machine, which shares only the machine. The
// three take turns, in both orders. Each begins when both servers are idle.
func (b *bench) tenants(ctx context.Context) (err error) {
	documents, err := b.corpus.write(filepath.Join(b.work, "documents"), b.IngestBytes/4, 13)
	if err != nil {
		return err
	}
	var servers [2]*instance
	var floods [2]*flood
	for i := range servers {
		home := filepath.Join(b.work, fmt.Sprintf("tenants-%d", i))
		if servers[i], _, err = b.serve(ctx, home); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].stop(), os.RemoveAll(home)) }()
		if floods[i], err = servers[i].newFlood(ctx, documents); err != nil {
			return err
		}
	}
	small, err := servers[0].tenants(ctx, smallTenants)
	if err != nil {
		return err
	}
	circumstances := [3]*circumstance{{}, {flood: floods[0]}, {flood: floods[1]}}
	for range b.Rounds {
		for _, i := range []int{0, 1, 2, 2, 1, 0} {
			for _, s := range servers {
				if err := s.awaitIdle(ctx); err != nil {
					return err
				}
			}
			if err := b.tenantPhase(ctx, small, circumstances[i]); err != nil {
				return err
			}
		}
	}
	b.reportTenants(circumstances[0], circumstances[1], circumstances[2])
	return nil
}

// tenantWork is the work of small tenants.
var tenantWork = []struct {
	name string
	do   func(ctx context.Context, t tenant, n int) error
}{
	{"append", func(ctx context.Context, t tenant, n int) error {
		return t.say(ctx, t.agent, fmt.Sprintf("The ferry number %d leaves at noon.", n))
	}},
	{"prompt", func(ctx context.Context, t tenant, _ int) error { return t.prompt(ctx, t.agent) }},
	{"search", func(ctx context.Context, t tenant, _ int) error { return t.search(ctx, t.agent) }},
}

// tenantPhase measures each kind of work once in a circumstance.
func (b *bench) tenantPhase(ctx context.Context, small []tenant, situation *circumstance) error {
	var run *floodRun
	if situation.flood != nil {
		var err error
		if run, err = situation.flood.start(ctx); err != nil {
			return err
		}
		if err := pause(ctx, floodBegins); err != nil {
			return errors.Join(err, run.kill())
		}
	}
	seconds, err := measureTenants(ctx, small, b.SearchFor)
	if run != nil {
		tally, failure := run.end()
		situation.tallies = append(situation.tallies, tally)
		err = errors.Join(err, failure)
	}
	situation.phases = append(situation.phases, seconds)
	return err
}

// measureTenants lets the clients of the small tenants work for a duration. It returns the seconds that each request
// took, by kind of work.
func measureTenants(ctx context.Context, small []tenant, d time.Duration) (map[string][]float64, error) {
	type took struct {
		work    string
		seconds float64
	}
	all := make(chan took)
	var failed error
	go func() {
		defer close(all)
		_, failed = repeat(ctx, tenantClients, d, func(client, n int) error {
			start := time.Now()
			work := tenantWork[(n+client)%len(tenantWork)]
			if err := work.do(ctx, small[(client*len(small)/tenantClients+n)%len(small)], n); err != nil {
				return fmt.Errorf("%s: %w", work.name, err)
			}
			spent := time.Since(start)
			all <- took{work.name, spent.Seconds()}
			return pause(ctx, requestEvery-spent)
		})
	}()
	seconds := map[string][]float64{}
	for t := range all {
		seconds[t.work] = append(seconds[t.work], t.seconds)
	}
	return seconds, failed
}

// reportTenants adds the rows about the tenants.
func (b *bench) reportTenants(alone, flooded, control *circumstance) {
	for _, work := range tenantWork {
		for _, q := range []float64{0.5, 0.95} {
			row := Row{What: fmt.Sprintf("%s of %d small tenants while one floods: p%.0f", work.name, smallTenants, 100*q),
				Unit: "ms", Versus: "the same without the flood", Note: flooded.note()}
			if q == 0.5 {
				row.AtMost = 1.5
			}
			beside := Row{What: fmt.Sprintf("%s, the flood going to another server of the machine: p%.0f", work.name, 100*q),
				Unit: "ms", Versus: "the same without the flood", Note: control.note()}
			row.Against.Raw = alone.quantiles(work.name, q)
			beside.Against = row.Against
			row.Loci.Raw, beside.Loci.Raw = flooded.quantiles(work.name, q), control.quantiles(work.name, q)
			for _, r := range []*Row{&row, &beside} {
				r.settle(median)
				say("%s: %.2f ms, alone %.2f ms: %.2f (%s)", r.What, r.Loci.Value, r.Against.Value, r.ratio(), r.Note)
				b.report.add(*r)
			}
		}
	}
}

// quantiles returns a quantile of a kind of work's durations in each phase, in milliseconds.
func (c *circumstance) quantiles(work string, q float64) (list []float64) {
	for _, phase := range c.phases {
		list = append(list, quantile(phase[work], q)*1e3)
	}
	return list
}

// quantile returns the smallest value that is not exceeded by the share q of the list.
func quantile(list []float64, q float64) float64 {
	if q == 0.5 {
		return median(list)
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// note says how many requests the small tenants sent, and what the flood did.
func (c *circumstance) note() string {
	requests := 0
	for _, phase := range c.phases {
		for _, seconds := range phase {
			requests += len(seconds)
		}
	}
	return fmt.Sprintf("%d requests of %d clients; %s", requests, tenantClients, sum(c.tallies))
}

// tenants creates organizations, each with a key, an agent, a folder and ten messages.
func (s *instance) tenants(ctx context.Context, number int) ([]tenant, error) {
	list := make([]tenant, number)
	for i := range list {
		c, err := s.organization(ctx, fmt.Sprintf("tenant %d", i))
		if err != nil {
			return nil, err
		}
		list[i].client = c
		if list[i].folder, list[i].agent, err = c.folder(ctx, "harbour"); err != nil {
			return nil, err
		}
		for n := range 5 {
			if err := c.say(ctx, list[i].agent, fmt.Sprintf("Ship number %d is in the harbour.", n)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// drain bounds the wait for a server to finish the work that a flood left.
const drain = 10 * time.Minute

// awaitIdle waits until the server has no jobs, its database runs no statement and no autovacuum, and all writes are on
// disk.
func (s *instance) awaitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	return s.query(ctx, func(conn *pgx.Conn) error {
		quiet := 0 // consecutive checks
		err := poll(ctx, lookEvery, func() (bool, error) {
			var busy bool
			err := conn.QueryRow(ctx, `
				SELECT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'pending', 'running', 'retryable'))
				    OR EXISTS (SELECT FROM pg_stat_activity
				               WHERE pid <> pg_backend_pid() AND (backend_type = 'autovacuum worker'
				                  OR backend_type = 'client backend' AND state <> 'idle'))`).Scan(&busy)
			if quiet++; busy {
				quiet = 0
			}
			return quiet == 3, err
		})
		if err == nil {
			_, err = conn.Exec(ctx, `CHECKPOINT`)
		}
		if err != nil {
			err = fmt.Errorf("wait until the server has nothing to do: %w", err)
		}
		return err
	})
}
