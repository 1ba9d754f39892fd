package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// searched is a way of searching, and what to search for.
type searched struct {
	queries []string
	once    func(ctx context.Context, s *instance, query string) error
	ranks   func(sql string) bool // whether a statement ranks
	last    string                // of the last such statement, a part
}

// inFiles searches the files of an agent.
func inFiles(agent string, queries []string) searched {
	return searched{
		queries: queries,
		once: func(ctx context.Context, s *instance, query string) error {
			_, err := s.tool(ctx, agent, "semantic_search_files", map[string]any{"query": query})
			return err
		},
		ranks: func(sql string) bool {
			return strings.Contains(sql, "chunks") && strings.Contains(sql, "lex") || strings.Contains(sql, "chunk_vectors") ||
				strings.Contains(sql, "c.heading")
		},
		last: "c.heading",
	}
}

// search measures searches over REST against the ranking statements of the server, sent by pgbench. It stops the
// server.
func (b *bench) search(ctx context.Context, in *ingestion, name string, settings []string) error {
	queries := b.corpus.queries(b.Queries)
	p50 := Row{What: fmt.Sprintf("search of %d chunks, %s: p50 of 1 client", in.chunks, name), Unit: "ms", AtMost: 2}
	rate := Row{What: fmt.Sprintf("the same: throughput of %d clients", manyClients), Unit: "/s", AtLeast: 0.6}
	p50.Versus = "its ranking SQL by pgbench -M prepared"
	rate.Versus = p50.Versus
	if b.tool("pgbench") == "" {
		b.report.skip("pgbench is not installed", p50, rate)
		return in.stop()
	}
	if err := in.stop(); err != nil { // what the upload left in memory is not what is measured
		return err
	}
	s, _, err := b.serve(ctx, in.home, settings...)
	if err != nil {
		return err
	}
	err = b.searchRounds(ctx, s, inFiles(in.agent, queries), &p50, &rate)
	if err == nil {
		p50.settle(median)
		rate.settle(median)
		b.report.add(p50, rate)
		in.instance = s
		err = b.besideFTS5(ctx, in, queries, p50, rate)
	}
	return errors.Join(err, s.stop())
}

func (b *bench) searchRounds(ctx context.Context, s *instance, in searched, p50, rate *Row) error {
	p, err := b.capture(ctx, s, in, in.queries)
	if err != nil {
		return fmt.Errorf("note the statements of a search: %w", err)
	}
	p50.Note = fmt.Sprintf("%d queries, %.1f statements of each, %s", len(in.queries), p.perQuery, p.plans)
	for range b.Rounds {
		for _, clients := range []int{1, manyClients} {
			loci, err := searchFor(ctx, s, in, clients, b.SearchFor)
			if err != nil {
				return err
			}
			sql, err := p.run(ctx, clients, b.SearchFor)
			if err != nil {
				return err
			}
			if clients == 1 {
				p50.measured(loci.p50()*1e3, sql.p50()*1e3)
			} else {
				rate.measured(loci.rate(), sql.rate())
			}
		}
	}
	say("%s: Loci %.2f ms, SQL %.2f ms; %s: Loci %.0f/s, SQL %.0f/s", p50.What, last(p50.Loci.Raw), last(p50.Against.Raw),
		rate.What, last(rate.Loci.Raw), last(rate.Against.Raw))
	return nil
}

func last(list []float64) float64 { return list[len(list)-1] }

// latencies are the seconds that each call of some clients took.
type latencies struct {
	seconds []float64
	took    time.Duration // all of them
}

func (l latencies) p50() float64  { return median(l.seconds) }
func (l latencies) rate() float64 { return float64(len(l.seconds)) / l.took.Seconds() }

// searchFor searches for a duration; each client starts at another of the queries.
func searchFor(ctx context.Context, s *instance, in searched, clients int, d time.Duration) (latencies, error) {
	queries := in.queries
	for _, q := range queries { // as pgbench prepares its statements, so the server its caches
		if err := in.once(ctx, s, q); err != nil {
			return latencies{}, err
		}
	}
	return repeat(ctx, clients, d, func(client, n int) error {
		return in.once(ctx, s, queries[(client*len(queries)/clients+n)%len(queries)])
	})
}

// repeat lets each client call do again and again for a duration.
func repeat(ctx context.Context, clients int, d time.Duration, do func(client, n int) error) (latencies, error) {
	var mu sync.Mutex
	var all latencies
	var failed error
	began := time.Now()
	var clientsDone sync.WaitGroup
	for client := range clients {
		clientsDone.Go(func() {
			var own []float64
			var err error
			for n := 0; err == nil && ctx.Err() == nil && (n == 0 || time.Since(began) < d); n++ {
				start := time.Now()
				err = do(client, n)
				own = append(own, time.Since(start).Seconds())
			}
			mu.Lock()
			defer mu.Unlock()
			all.seconds = append(all.seconds, own...)
			failed = errors.Join(failed, err)
		})
	}
	clientsDone.Wait()
	all.took = time.Since(began)
	return all, errors.Join(failed, ctx.Err())
}
