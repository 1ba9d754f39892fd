package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgbench replays the statements that the server sent for some queries: one script for each query.
type pgbench struct {
	program   string
	url       string
	dir       string
	scripts   []string
	variables []string // variables of the scripts: -D, name=value, -D, …
	perQuery  float64  // statements in a script
	plans     string   // plan_cache_mode of Postgres
}

// sent is a statement that the server sent.
type sent struct {
	sql    string
	values map[string]string // parameters by number; null ones are missing
}

// capture searches once for each query while Postgres logs its statements. It keeps the statements that rank, and
// settings made for them. The server's other statements (who the agent is, what it has attached) count as its own cost.
func (b *bench) capture(ctx context.Context, s *instance, search searched, queries []string) (p pgbench, err error) {
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
	for _, q := range queries { // warms up, as before each measurement
		if err := search.once(ctx, s, q); err != nil {
			return p, err
		}
	}
	if err := logStatements(ctx, conn, "all"); err != nil {
		return p, err
	}
	for i, q := range queries {
		list, err := captureWhole(ctx, s, conn, search, q)
		if err != nil {
			return p, err
		}
		if err := p.addScript(i, list); err != nil {
			return p, err
		}
	}
	p.perQuery /= float64(len(queries))
	if err := logStatements(ctx, conn, "none"); err != nil {
		return p, err
	}
	return p, p.choosePlans(ctx, b.SearchFor)
}

// choosePlans measures both ways in which Postgres can plan a prepared statement (for each execution, or once), and
// picks the faster. For the server, Postgres can choose by itself, because it sends few statements often. These scripts
// contain many statements, and run each rarely.
func (p *pgbench) choosePlans(ctx context.Context, d time.Duration) error {
	best, fastest := "", math.Inf(1)
	for _, plans := range []string{"force_custom_plan", "force_generic_plan"} {
		p.plans = plans
		l, err := p.run(ctx, 1, d)
		if err != nil {
			return err
		}
		say("pgbench, plan_cache_mode=%s: %.2f ms", plans, l.p50()*1e3)
		if l.p50() < fastest {
			best, fastest = plans, l.p50()
		}
	}
	p.plans = best
	return nil
}

// logStatements sets which statements the server's connections log, including connections that are already open.
func logStatements(ctx context.Context, conn *pgx.Conn, level string) error {
	for _, sql := range []string{`ALTER SYSTEM SET log_statement = '` + level + `'`, `SELECT pg_reload_conf()`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return pause(ctx, 500*time.Millisecond) // a connection reads its settings at its next statement after the signal
}

// captureWhole returns the ranking statements of a query. If Postgres cannot parse one, it tries again, because long
// lines from two connections can mix in the log.
func captureWhole(ctx context.Context, s *instance, conn *pgx.Conn, search searched, query string) ([]sent, error) {
	for tries := 1; ; tries++ {
		list, err := captureOne(ctx, s, search, query)
		if err != nil {
			return nil, err
		}
		if err = parse(ctx, conn, list); err == nil || tries == maxCaptures {
			return list, err
		}
	}
}

// parse returns the error for the first statement that Postgres cannot parse.
func parse(ctx context.Context, conn *pgx.Conn, list []sent) error {
	for _, s := range list {
		if _, err := conn.Prepare(ctx, "", s.sql); err != nil {
			return fmt.Errorf("the log has a statement that does not parse: %w: %s", err, s.sql)
		}
	}
	return nil
}

// captureOne searches once, and returns the ranking statements that the server then logged.
func captureOne(ctx context.Context, s *instance, search searched, query string) (list []sent, err error) {
	log := filepath.Join(s.home, "bench.log")
	info, err := os.Stat(log)
	if err != nil {
		return nil, err
	}
	if err := search.once(ctx, s, query); err != nil {
		return nil, err
	}
	var text []byte
	// The server writes Postgres' log lines with a delay.
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		if text, err = os.ReadFile(log); err != nil {
			return false, err
		}
		list, err = ranking(string(text[info.Size():]), search.ranks)
		return time.Since(info.ModTime()) > 10*time.Second || len(list) > 0 &&
			strings.Contains(list[len(list)-1].sql, search.last), err
	})
	return list, err
}

// addScript writes the script for a query.
func (p *pgbench) addScript(n int, list []sent) error {
	p.perQuery += float64(len(list))
	path := filepath.Join(p.dir, fmt.Sprintf("%d.sql", n))
	p.scripts = append(p.scripts, path)
	return os.WriteFile(path, []byte(p.script(fmt.Sprintf("v%d", n), list)), 0o644)
}

// maxCaptures is how often a query is tried until its logged statements are complete.
const maxCaptures = 5

// longValue is the length from which a value is written into the script, because it does not fit in a program's
// argument.
const longValue = 2000

// script returns the text of a script. Parameters become variables, because Postgres would plan for a literal value.
func (p *pgbench) script(prefix string, list []sent) string {
	var b strings.Builder
	for i, s := range list {
		b.WriteString(place.ReplaceAllStringFunc(s.sql, func(dollar string) string {
			value, ok := s.values[dollar[1:]]
			if !ok {
				return "NULL"
			}
			if len(value) > longValue {
				return "'" + strings.ReplaceAll(value, "'", "''") + "'"
			}
			name := fmt.Sprintf("%s_%d_%s", prefix, i, dollar[1:])
			p.variables = append(p.variables, "-D", name+"="+value)
			return ":" + name
		}) + ";\n")
	}
	return b.String()
}

var (
	logLine    = regexp.MustCompile(`msg="postgres: ((?:[^"\\]|\\.)*)"`)
	statement  = regexp.MustCompile(`^(?:execute [^:]*|statement): `)
	parameters = regexp.MustCompile(`(?i)^DETAIL:  parameters: `)
	parameter  = regexp.MustCompile(`\$(\d+) = '((?:[^']|'')*)'`)
	place      = regexp.MustCompile(`\$(\d+)\b`)
)

// ranking reads the ranking statements from a server's log.
func ranking(log string, ranks func(sql string) bool) (list []sent, err error) {
	var s sent
	flush := func() {
		if ranks(s.sql) || strings.Contains(s.sql, "hnsw.") {
			s.sql = strings.Join(strings.Fields(s.sql), " ")
			list = append(list, s)
		}
		s = sent{}
	}
	for _, m := range logLine.FindAllStringSubmatch(log, -1) {
		line, err := strconv.Unquote(`"` + m[1] + `"`)
		if err != nil {
			return nil, fmt.Errorf("read the server's log: %w", err)
		}
		switch {
		case statement.MatchString(line):
			flush()
			s.sql = " " + line[len(statement.FindString(line)):] // the statement may continue on the next lines
		case parameters.MatchString(line):
			s.values = map[string]string{}
			for _, p := range parameter.FindAllStringSubmatch(line, -1) {
				s.values[p[1]] = strings.ReplaceAll(p[2], "''", "'")
			}
			flush()
		case s.sql != "":
			s.sql += " " + line
		}
	}
	flush()
	return transactions(list), nil
}

// transactions puts each transaction-local setting into one transaction with the statement after it.
func transactions(list []sent) (wrapped []sent) {
	for i := 0; i < len(list); i++ {
		if !strings.Contains(list[i].sql, "hnsw.") || i+1 == len(list) {
			wrapped = append(wrapped, list[i])
			continue
		}
		wrapped = append(wrapped, sent{sql: "BEGIN"}, list[i], list[i+1], sent{sql: "COMMIT"})
		i++
	}
	return wrapped
}

// run runs the scripts for a while, in random order.
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
	cmd := exec.CommandContext(ctx, p.program, append(append(args, p.variables...), p.url)...)
	cmd.Env = append(environment(), "PGOPTIONS=-c plan_cache_mode="+p.plans)
	if out, err := cmd.CombinedOutput(); err != nil {
		return latencies{}, fmt.Errorf("pgbench: %w:\n%s", err, out)
	}
	return readLatencies(logs)
}

// readLatencies reads pgbench's logs. The third column is a transaction's duration in microseconds; the last two are
// the time of its end.
func readLatencies(dir string) (l latencies, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return l, err
	}
	var first, latest float64
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return l, err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var client, n, micros, script, seconds, fraction float64
			if _, err := fmt.Sscan(lines.Text(), &client, &n, &micros, &script, &seconds, &fraction); err != nil {
				return l, errors.Join(err, file.Close())
			}
			finished := seconds + fraction/1e6
			if started := finished - micros/1e6; first == 0 || started < first {
				first = started
			}
			latest = max(latest, finished)
			l.seconds = append(l.seconds, micros/1e6)
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return l, err
		}
	}
	l.took = time.Duration((latest - first) * float64(time.Second))
	if len(l.seconds) == 0 {
		err = errors.New("pgbench finished no transaction")
	}
	return l, err
}
