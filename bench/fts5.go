package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5"
)

// fts5 is a running bench/fts5: SQLite's full text search over the same chunks.
type fts5 struct {
	command *exec.Cmd
	in      io.WriteCloser
	ask     *json.Encoder
	answers *json.Decoder
}

// besideFTS5 measures SQLite's FTS5 with the same chunks and queries, and adds rows that compare it with Loci. The
// targets allow Loci at most a tenth of FTS5's time for words, and a quarter for words and meaning.
func (b *bench) besideFTS5(ctx context.Context, loaded *ingestion, queries []string, loci, rate Row) error {
	beside := Row{What: loci.What, Unit: loci.Unit, AtMost: 0.1, Versus: "SQLite FTS5, any of the words"}
	if loaded.vectors {
		beside.AtMost = 0.25
	}
	throughput := Row{What: rate.What, Unit: rate.Unit, Versus: beside.Versus}
	if b.tool("fts5") == "" {
		b.report.skip("bench/fts5 is not built", beside, throughput)
		return nil
	}
	f, rows, err := b.startFTS5(ctx, loaded)
	if err != nil {
		return fmt.Errorf("FTS5: %w", err)
	}
	for clients, row := range map[int]*Row{1: &beside, manyClients: &throughput} {
		p50, perSecond, err := f.search(queries, clients, b.SearchFor.Seconds())
		if err != nil {
			return errors.Join(err, f.stop())
		}
		row.Note = fmt.Sprintf("%d rows", rows)
		for _, lociValue := range map[int]Row{1: loci, manyClients: rate}[clients].Loci.Raw {
			row.measured(lociValue, map[int]float64{1: p50 * 1e3, manyClients: perSecond}[clients])
		}
		row.settle(median)
	}
	say("%s: FTS5 %.2f ms, %.0f/s", beside.What, last(beside.Against.Raw), last(throughput.Against.Raw))
	b.report.add(beside, throughput)
	return f.stop()
}

// startFTS5 starts the program, and loads the chunks.
func (b *bench) startFTS5(ctx context.Context, loaded *ingestion) (f *fts5, rows int, err error) {
	f = &fts5{command: exec.CommandContext(ctx, b.tool("fts5"))}
	f.command.Stderr = os.Stderr
	if f.in, err = f.command.StdinPipe(); err != nil {
		return nil, 0, err
	}
	stdout, err := f.command.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	f.ask, f.answers = json.NewEncoder(f.in), json.NewDecoder(stdout)
	if err := f.command.Start(); err != nil {
		return nil, 0, err
	}
	rows, err = f.load(ctx, loaded)
	if err != nil {
		return nil, rows, errors.Join(err, f.stop())
	}
	return f, rows, nil
}

func (f *fts5) load(ctx context.Context, loaded *ingestion) (rows int, err error) {
	err = loaded.query(ctx, func(conn *pgx.Conn) error {
		list, err := conn.Query(ctx, `SELECT text FROM chunks WHERE org = $1`, benchOrg)
		if err != nil {
			return err
		}
		var text string
		_, err = pgx.ForEachRow(list, []any{&text}, func() error {
			rows++
			return f.ask.Encode(text)
		})
		return err
	})
	return rows, err
}

func (f *fts5) search(queries []string, clients int, seconds float64) (median, perSecond float64, err error) {
	if err := f.ask.Encode(map[string]any{"queries": queries, "clients": clients, "seconds": seconds}); err != nil {
		return 0, 0, err
	}
	var answer struct {
		Median float64 `json:"median_seconds"`
		Rate   float64 `json:"searches_per_second"`
		Hits   int     `json:"hits"`
	}
	if err := f.answers.Decode(&answer); err != nil {
		return 0, 0, err
	}
	if answer.Hits == 0 {
		return 0, 0, errors.New("no query has a hit")
	}
	return answer.Median, answer.Rate, nil
}

func (f *fts5) stop() error { return errors.Join(f.in.Close(), f.command.Wait()) }
