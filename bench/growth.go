package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// growth measures searches by words in everything that was loaded, compared with searches in a hundredth of it, in
// turns.
func (l *load) growth(ctx context.Context, s *instance) error {
	var folder, smallAgent string
	var all named
	var chunks, fewChunks int
	if err := s.query(ctx, func(conn *pgx.Conn) (err error) {
		if folder, smallAgent, err = s.folder(ctx, "few"); err != nil {
			return err
		}
		const count = `SELECT count(*) FROM chunks WHERE org = $1`
		if err := conn.QueryRow(ctx, count, benchOrg).Scan(&chunks); err != nil {
			return err
		}
		if _, err := s.ingest(ctx, conn, folder, l.few); err != nil {
			return err
		}
		err = conn.QueryRow(ctx, count, benchOrg).Scan(&fewChunks)
		fewChunks -= chunks
		return err
	}); err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/v1/agents/", agentNamed("all"), &all); err != nil {
		return err
	}
	for _, folder := range l.folders {
		if err := s.call(ctx, http.MethodPatch, "/v1/agents/"+all.ID+"/folders/attach/"+folder, nil, nil); err != nil {
			return err
		}
	}
	if err := pause(ctx, l.Settle); err != nil {
		return err
	}
	row := Row{What: fmt.Sprintf("search of %d chunks, words: p50 of 1 client", chunks), Unit: "ms", AtMost: 3,
		Versus: fmt.Sprintf("of %d chunks", fewChunks)}
	queries := l.corpus.queries(l.Queries)
	for range l.Rounds {
		var p50 [2]float64
		for i, agent := range []string{all.ID, smallAgent} {
			latency, err := searchFor(ctx, s, inFiles(agent, queries), 1, l.SearchFor)
			if err != nil {
				return err
			}
			p50[i] = latency.p50() * 1e3
		}
		row.measured(p50[0], p50[1])
	}
	row.settle(median)
	l.report.add(row)
	return nil
}
