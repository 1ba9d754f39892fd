package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hunt is a pattern, and the needle that it finds.
type hunt struct {
	pattern string
	needle  needle
	many    bool
}

// hunts are the patterns to search for. The last one has no literal that an index could use.
func hunts() []hunt {
	return []hunt{
		{`obsidian weathervane`, needle{"Obsidian weathervane", 40}, false},
		{`ERR-7\d{3}-LOST`, needle{"ERR-7304-LOST", 60}, false},
		{`resolveQuuxDeadline\(`, needle{"resolveQuuxDeadline(ctx)", 20}, false},
		{`nowhere to be found`, needle{}, false},
		{`marginalia noted`, needle{"Marginalia noted", 800}, true},
		{`\b[jq][xz][jq]\d\b`, needle{"jzq7", 600}, true},
	}
}

func needles() (list []needle) {
	for _, h := range hunts() {
		if h.needle.times > 0 {
			list = append(list, h.needle)
		}
	}
	return list
}

// grep measures grep_files against ripgrep on the same documents. Cold means right after a start of the server and its
// Postgres; the system's file cache is warm on both sides. grep returns a running server.
func (b *bench) grep(ctx context.Context, s *instance, agent, documents string,
	restart func() (*instance, error)) (*instance, error) {
	rows := map[string]*Row{}
	size := fmt.Sprintf("grep of %d MiB, ", b.GrepBytes/mebibyte)
	for _, state := range []string{"cold", "warm"} {
		rows[state] = &Row{What: size + "selective, " + state, Unit: "ms", AtMost: 1, Versus: "rg -n -i"}
		rows[state+many] = &Row{What: size + "many matches counted, " + state, Unit: "ms", AtMost: 12, Versus: "rg -n -i"}
	}
	order := []*Row{rows["cold"], rows["warm"], rows["cold"+many], rows["warm"+many]}
	if b.tool("rg") == "" {
		b.report.skip("rg is not installed", *order[0], *order[1], *order[2], *order[3])
		return s, nil
	}
	for _, h := range hunts() {
		g := hunting{bench: b, hunt: h, agent: agent, documents: documents}
		var err error
		if s, err = g.measure(ctx, s, restart, rows); err != nil {
			return s, fmt.Errorf("%s: %w", h.pattern, err)
		}
	}
	for _, row := range order {
		b.report.add(*row)
	}
	return s, nil
}

// many distinguishes the rows of frequent patterns from the rows of selective ones.
const many = ", many"

// hunting is the measurement of one pattern.
type hunting struct {
	*bench
	hunt
	agent     string
	documents string
}

// measure takes the minimum of several runs on each side. A row keeps the pattern with the worst result.
func (g hunting) measure(ctx context.Context, s *instance, restart func() (*instance, error),
	rows map[string]*Row) (*instance, error) {
	cold, warm := Row{}, Row{}
	for range g.GrepRuns {
		var err error
		if s, err = restart(); err != nil {
			return s, err
		}
		first, lines, err := g.ask(ctx, s)
		if err != nil {
			return s, err
		}
		second, _, err := g.ask(ctx, s)
		if err != nil {
			return s, err
		}
		rg, want, err := g.ripgrep(ctx)
		if err != nil {
			return s, err
		}
		if lines != want {
			return s, fmt.Errorf("Loci finds %d lines, and ripgrep %d", lines, want)
		}
		cold.measured(first.Seconds()*1e3, rg.Seconds()*1e3)
		warm.measured(second.Seconds()*1e3, rg.Seconds()*1e3)
		cold.Note = fmt.Sprintf("worst of its patterns: `%s`, %d matches", g.pattern, want)
	}
	warm.Note = cold.Note
	cold.settle(least)
	warm.settle(least)
	say("grep %s: cold %.0f ms, warm %.0f ms, rg %.0f ms", g.pattern, cold.Loci.Value, warm.Loci.Value, warm.Against.Value)
	suffix := ""
	if g.many {
		suffix = many
	}
	rows["cold"+suffix].keepWorse(g.pattern, cold)
	rows["warm"+suffix].keepWorse(g.pattern, warm)
	return s, nil
}

var totalMatches = regexp.MustCompile(`^Found (\d+) total matches`)

// ask runs grep_files, and returns its time and the number of lines found.
func (g hunting) ask(ctx context.Context, s *instance) (time.Duration, int, error) {
	start := time.Now()
	text, err := s.tool(ctx, g.agent, "grep_files", map[string]any{"pattern": g.pattern})
	duration := time.Since(start)
	if err != nil || strings.HasPrefix(text, "No matches found") {
		return duration, 0, err
	}
	m := totalMatches.FindStringSubmatch(text)
	if m == nil {
		return duration, 0, fmt.Errorf("grep_files answers: %.200s", text)
	}
	n, err := strconv.Atoi(m[1])
	return duration, n, err
}

// ripgrep runs rg on the same documents, with its default number of threads, and counts the lines found.
func (g hunting) ripgrep(ctx context.Context) (time.Duration, int, error) {
	cmd := exec.CommandContext(ctx, g.tool("rg"), "--no-config", "--no-ignore", "-n", "-i", "--", g.pattern,
		filepath.Clean(g.documents))
	var out bytes.Buffer
	cmd.Stdout = &out
	start := time.Now()
	err := cmd.Run()
	duration := time.Since(start)
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1 { // rg found no line
		err = nil
	}
	return duration, bytes.Count(out.Bytes(), []byte("\n")), err
}
