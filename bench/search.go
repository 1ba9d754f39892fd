package main

import (
	"context"
	"errors"
	"fmt"
)

// search measures searches over REST against pgbench running the same ranking statements. It stops the server.
func (b *bench) search(ctx context.Context, loaded *ingestion, name string, settings []string) error {
	queries := b.corpus.queries(b.Queries)
	p50 := Row{What: fmt.Sprintf("search of %d chunks, %s: p50 of 1 client", loaded.chunks, name), Unit: "ms", AtMost: 2}
	rate := Row{What: fmt.Sprintf("the same: throughput of %d clients", manyClients), Unit: "/s", AtLeast: 0.6}
	p50.Versus = "its ranking SQL by pgbench -M prepared"
	rate.Versus = p50.Versus
	if b.tool("pgbench") == "" {
		b.report.skip("pgbench is not installed", p50, rate)
		return loaded.stop()
	}
	if err := loaded.stop(); err != nil { // the upload left data in memory that should not be measured
		return err
	}
	s, _, err := b.serve(ctx, loaded.home, settings...)
	if err != nil {
		return err
	}
	err = b.searchRounds(ctx, s, inFiles(loaded.agent, queries), &p50, &rate)
	if err == nil {
		p50.settle(median)
		rate.settle(median)
		b.report.add(p50, rate)
		loaded.instance = s
		err = b.besideFTS5(ctx, loaded, queries, p50, rate)
	}
	return errors.Join(err, s.stop())
}

func (b *bench) searchRounds(ctx context.Context, s *instance, search searched, p50, rate *Row) error {
	p, err := b.capture(ctx, s, search, search.queries)
	if err != nil {
		return fmt.Errorf("note the statements of a search: %w", err)
	}
	p50.Note = fmt.Sprintf("%d queries, %.1f statements of each, %s", len(search.queries), p.perQuery, p.plans)
	for range b.Rounds {
		for _, clients := range []int{1, manyClients} {
			loci, err := searchFor(ctx, s, search, clients, b.SearchFor)
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
