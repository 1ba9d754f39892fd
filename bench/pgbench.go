package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgbench sends what the server sent for each of some queries: a script a query.
type pgbench struct {
	program  string
	url      string
	dir      string
	scripts  []string
	perQuery float64 // statements of a script
}

// capture searches once for each query while Postgres writes down what it is sent, and keeps the statements that rank: those that read
// chunks or vectors, and settings made for them. What the server asks besides (who the agent is, what it has attached) is its own cost.
func (b *bench) capture(ctx context.Context, s *instance, agent string, queries []string) (p pgbench, err error) {
	p = pgbench{program: b.tool("pgbench"), dir: filepath.Join(b.work, "pgbench")}
	if p.url, err = s.postgres(); err != nil {
		return p, err
	}
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return p, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return p, err
	}
	for _, q := range queries { // as before each measurement
		if err := searchOnce(ctx, s, agent, q); err != nil {
			return p, err
		}
	}
	if err := logStatements(ctx, conn, "all"); err != nil {
		return p, err
	}
	for i, q := range queries {
		if err := p.captureOne(ctx, s, agent, i, q); err != nil {
			return p, err
		}
	}
	p.perQuery /= float64(len(queries))
	return p, logStatements(ctx, conn, "none")
}

// logStatements sets what the server's connections write down, of those that are open already too.
func logStatements(ctx context.Context, conn *pgx.Conn, which string) error {
	for _, sql := range []string{`ALTER SYSTEM SET log_statement = '` + which + `'`, `SELECT pg_reload_conf()`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return pause(ctx, 500*time.Millisecond) // a connection reads its settings again at its next statement after the signal
}

// captureOne writes the script of one query.
func (p *pgbench) captureOne(ctx context.Context, s *instance, agent string, n int, query string) error {
	log := filepath.Join(s.home, "bench.log")
	before, err := os.Stat(log)
	if err != nil {
		return err
	}
	if err := searchOnce(ctx, s, agent, query); err != nil {
		return err
	}
	var text []byte
	var list []string
	// The server writes what it is told of Postgres when it comes to it.
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		if text, err = os.ReadFile(log); err != nil {
			return false, err
		}
		list, err = ranking(string(text[before.Size():]))
		return time.Since(before.ModTime()) > 10*time.Second || len(list) > 0 && strings.Contains(list[len(list)-1], "c.heading"), err
	})
	if err != nil {
		return err
	}
	p.perQuery += float64(len(list))
	path := filepath.Join(p.dir, fmt.Sprintf("%d.sql", n))
	p.scripts = append(p.scripts, path)
	return os.WriteFile(path, []byte(strings.Join(list, ";\n")+";\n"), 0o644)
}

var (
	logLine    = regexp.MustCompile(`msg="postgres: ((?:[^"\\]|\\.)*)"`)
	statement  = regexp.MustCompile(`^(?:execute [^:]*|statement): `)
	parameters = regexp.MustCompile(`(?i)^DETAIL:  parameters: `)
	parameter  = regexp.MustCompile(`\$(\d+) = ('(?:[^']|'')*'|NULL)`)
	place      = regexp.MustCompile(`\$(\d+)\b`)
)

// ranking reads the ranking statements from a server's log, parameters in their places.
func ranking(log string) (list []string, err error) {
	var sql string
	flush := func(values map[string]string) {
		full := place.ReplaceAllStringFunc(sql, func(p string) string { return values[p[1:]] })
		if strings.Contains(full, "chunks") && strings.Contains(full, "lex") || strings.Contains(full, "chunk_vectors") ||
			strings.Contains(full, "c.heading") || strings.Contains(full, "hnsw.") {
			list = append(list, strings.Join(strings.Fields(full), " "))
		}
		sql = ""
	}
	for _, m := range logLine.FindAllStringSubmatch(log, -1) {
		line, err := strconv.Unquote(`"` + m[1] + `"`)
		if err != nil {
			return nil, fmt.Errorf("read the server's log: %w", err)
		}
		switch {
		case statement.MatchString(line):
			flush(nil)
			sql = " " + line[len(statement.FindString(line)):] // which may go on in the next lines
		case parameters.MatchString(line):
			values := map[string]string{}
			for _, p := range parameter.FindAllStringSubmatch(line, -1) {
				values[p[1]] = p[2]
			}
			flush(values)
		case sql != "":
			sql += " " + line
		}
	}
	flush(nil)
	return transactions(list), nil
}

// transactions puts each setting that is local to a transaction into one, with the statement after it.
func transactions(list []string) (out []string) {
	for i := 0; i < len(list); i++ {
		if !strings.Contains(list[i], "hnsw.") || i+1 == len(list) {
			out = append(out, list[i])
			continue
		}
		out = append(out, "BEGIN", list[i], list[i+1], "COMMIT")
		i++
	}
	return out
}

// run sends the scripts for a while, in any order.
func (p *pgbench) run(ctx context.Context, clients int, d time.Duration) (latencies, error) {
	logs := filepath.Join(p.dir, "log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return latencies{}, err
	}
	defer os.RemoveAll(logs)
	args := []string{"-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)),
		"-T", strconv.Itoa(max(1, int(d.Seconds()))), "-l", "--log-prefix=" + filepath.Join(logs, "log")}
	for _, script := range p.scripts {
		args = append(args, "-f", script)
	}
	cmd := exec.CommandContext(ctx, p.program, append(args, p.url)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return latencies{}, fmt.Errorf("pgbench: %w:\n%s", err, out)
	}
	return readLatencies(logs)
}

// readLatencies reads pgbench's logs: the third column is a transaction's microseconds, the last two the time of its end.
func readLatencies(dir string) (l latencies, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return l, err
	}
	var first, end float64
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return l, err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var client, n, micros, script, seconds, rest float64
			if _, err := fmt.Sscan(lines.Text(), &client, &n, &micros, &script, &seconds, &rest); err != nil {
				return l, errors.Join(err, file.Close())
			}
			at := seconds + rest/1e6
			if began := at - micros/1e6; first == 0 || began < first {
				first = began
			}
			end = max(end, at)
			l.seconds = append(l.seconds, micros/1e6)
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return l, err
		}
	}
	l.took = time.Duration((end - first) * float64(time.Second))
	if len(l.seconds) == 0 {
		err = errors.New("pgbench finished no transaction")
	}
	return l, err
}
