// Command bench measures the built program over REST, against tools that do the bare work: COPY, pgbench, ripgrep. Both
// sides of a comparison take turns, on the same data. It prints a Markdown table, and keeps every number.
//
// Each file uses those that are named before it:
// - a run, how much it measures, and what it reports: machine.go report.go plot.go scale.go corpus.go bench.go
// describemachine.go
// - servers that are measured: client.go wait.go server.go cpu.go database.go organization.go embedder.go
// - searches: latencies.go searched.go filters.go pgbench.go
// - files that go in: ingestion.go copy.go fts5.go search.go ingest.go smallfiles.go background.go
// - much that goes in: grep.go load.go growth.go bulk.go
// - messages and passages: talk.go history.go passages.go mcp.go
// - programs at a provider: gateway.go
// - compactions: compaction.go policies.go lab.go
// - tenants beside each other: flood.go tenants.go
// - starts: start.go
// - how well questions are answered: dialogue.go locomo.go beam.go filequestion.go manual.go gofunctions.go filesets.go
// findfiles.go
// - the command: main.go
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// stage is a part of a run that is independent of the others.
type stage struct {
	name string
	run  func(*bench, context.Context) error
}

func stages() []stage {
	return []stage{
		{"start", (*bench).starts},
		{"words", func(b *bench, ctx context.Context) error { return b.ingestAndSearch(ctx, false) }},
		{"vectors", func(b *bench, ctx context.Context) error { return b.ingestAndSearch(ctx, true) }},
		{"small", (*bench).smallFiles},
		{"bulk", (*bench).bulk},
		{"history", (*bench).history},
		{"passages", (*bench).passages},
		{"compaction", (*bench).compaction},
		{"policies", (*bench).policies},
		{"lab", (*bench).replays},
		{"tenants", (*bench).tenants},
		{"mcp", (*bench).mcp},
		{"background", (*bench).background},
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	scale := flags.String("scale", "full", "how much is measured: full, small (a minute) or tiny (a trial)")
	only := flags.String("only", "",
		"stages to run, separated by commas: start, words, vectors, small, bulk, history, passages, compaction, "+
			"policies, lab, tenants, mcp, background; empty runs all")
	loci := flags.String("loci", "bin/loci", "the program to measure")
	locomo := flags.String("locomo", "",
		"a file of LoCoMo: only measure how well its questions are answered")
	beam := flags.String("beam", "",
		"a folder of chats in BEAM's layout: only measure how well their questions are answered")
	files := flags.Bool("files", false,
		"only measure how well questions are answered by files: installed manuals, and Go's sources")
	misses := flags.String("misses", "", "with -files, a file for the questions that are not answered, and their hits")
	out := flags.String("out", "",
		"directory for SCALE.json and SCALE.md of a whole run, and for drawings; empty keeps nothing")
	asFlood := flags.Bool("flood", false, "flood a server as standard input says: the bench starts itself so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *asFlood {
		return runFlood(ctx, os.Stdin, os.Stdout)
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, *scale, *loci)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	if *locomo != "" || *beam != "" || *files {
		err = b.recalls(ctx, *locomo, *beam)
		if err == nil && *files {
			err = b.findsInFiles(ctx, *misses)
		}
		return err
	}
	for _, s := range chosen {
		if err = s.run(b, ctx); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			break
		}
	}
	fmt.Print("\n", b.report.Markdown()) // after a failure, it has the rows so far
	if *out != "" {
		err = errors.Join(err, b.report.Draw(*out, *scale)) // each drawing is complete, even after a partial run
	}
	if err != nil || *out == "" || *only != "" {
		return err
	}
	return b.report.Keep(*out, *scale)
}

// recalls measures how well searches answer the questions of a LoCoMo file and of a BEAM folder. An empty path skips a
// set.
func (b *bench) recalls(ctx context.Context, locomo, beam string) error {
	for _, set := range []struct {
		path string
		read func(string) ([]dialogue, error)
		rows []recallRow
	}{{locomo, readLocomo, locomoRows()}, {beam, readBeam, beamRows()}} {
		if set.path == "" {
			continue
		}
		dialogues, err := set.read(set.path)
		if err != nil {
			return err
		}
		if err := b.asked(ctx, dialogues, set.rows); err != nil {
			return err
		}
	}
	return nil
}

func choose(only string) ([]stage, error) {
	all := stages()
	if only == "" {
		return all, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s stage) bool { return s.name == name }) {
			return nil,
				fmt.Errorf("there is no stage '%s'; the stages are start, words, vectors, small, bulk, history, passages, "+
					"compaction, policies, lab, tenants, mcp and background", name)
		}
	}
	return slices.DeleteFunc(all, func(s stage) bool { return !slices.Contains(names, s.name) }), nil
}

func newBench(ctx context.Context, scale, loci string) (*bench, error) {
	s, ok := scales()[scale]
	if !ok {
		return nil, fmt.Errorf("there is no scale '%s'; BENCH_SCALE is full, small or tiny", scale)
	}
	loci, err := filepath.Abs(loci)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(loci); err != nil {
		return nil, fmt.Errorf("%w; build it with: make build", err)
	}
	code, err := goSources(ctx)
	if err != nil {
		return nil, err
	}
	b := &bench{Scale: s, loci: loci, postgresBin: os.Getenv("LOCI_POSTGRES_BIN"), corpus: newCorpus(code)}
	if b.work, err = os.MkdirTemp("", "loci-bench-*"); err != nil {
		return nil, err
	}
	// If this runs as root, Postgres runs as another user, who must be able to enter the directory.
	if err := os.Chmod(b.work, 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.work))
	}
	for program, pkg := range needed() {
		if b.tool(program) == "" {
			say("%s is not installed (Debian: %s): what is compared with it is left out", program, pkg)
		}
	}
	b.report = &Report{Scale: scale, Machine: describeMachine(ctx, b)}
	return b, nil
}

// needed maps programs that are compared with to the packages that contain them. Nothing is installed.
func needed() map[string]string {
	return map[string]string{"rg": "ripgrep", "pgbench": "postgresql-contrib"}
}
