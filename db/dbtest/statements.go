package dbtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/migrations"
)

// acrossOrganizations lists the functions with statements that may read rows of more than one organization, each with
// the reason. The work that they find is done for each organization separately.
var acrossOrganizations = map[string]string{
	"grep.(*Searcher).UpdateIndex":   "finds the folders whose text is to be indexed",
	"grep.(*Searcher).PruneIndex":    "finds the folders whose index is stale",
	"endpoint.(*Queue[...]).waiting": "finds the owners of rows that wait for vectors",
	"endpoint.Vectors.index":         "counts the vectors of a space, which one index serves for all",
	"endpoint.Vectors.ClearUnused":   "finds the organizations with batches of spaces that no server uses",
	"archival.(*Store).Clear":        "finds the organizations with deleted archives",
	"erase.(*Store).next":            "finds the organizations with erasures of servers that are gone",
	"loop.(*Loop).orphans":           "finds the runs of servers that are gone",
	"loop.(*Loop).Forget":            "deletes batches of the items of old runs",
	"counts.All":                     "counts files and open files",
	"job.Query.args":                 "lists the work of all organizations, for the operator",
	"quota.(*Store).Fold":            "finds the organizations whose usage is in many rows",
	"recall.(*Store).Clear":          "finds the organizations with deleted agents, and with texts that nothing names",
	"db.ForgetDeleted":               "finds the organizations with old places of deleted rows",
}

// statements collects the statements that the product ran on the pools of this program's tests.
var statements collector

// collector is a tracer that keeps each different statement of the product, with the function that ran it. It ignores
// statements of tests.
type collector struct {
	mu     sync.Mutex
	seen   map[string]bool     // as the product wrote them
	from   map[string]string   // statement, as Postgres gets it → caller
	copied map[string][]string // caller and table of a COPY → columns
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *collector) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.add(ctx, conn, q.SQL, q.Args)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *collector) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *collector) TraceBatchStart(ctx context.Context, conn *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		c.add(ctx, conn, q.SQL, q.Arguments)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (c *collector) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (c *collector) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (c *collector) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData,
) context.Context {
	if from := caller(); from != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.copied == nil {
			c.copied = map[string][]string{}
		}
		c.copied[from+" "+data.TableName[len(data.TableName)-1]] = data.ColumnNames
	}
	return ctx
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (c *collector) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

var manipulates = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|MERGE)\b`)

// add records a statement in the form that Postgres gets, with numbered parameters.
func (c *collector) add(ctx context.Context, conn *pgx.Conn, sql string, args []any) {
	if c.has(sql) || !manipulates.MatchString(sql) {
		return
	}
	from := caller()
	if from == "" {
		return
	}
	written := sql
	for i, arg := range args {
		if r, ok := arg.(pgx.QueryRewriter); ok {
			if rewritten, _, err := r.RewriteQuery(ctx, conn, sql, args[i+1:]); err == nil {
				sql = rewritten
			}
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen, c.from = map[string]bool{}, map[string]string{}
	}
	c.seen[written] = true
	if c.from[sql] == "" {
		c.from[sql] = from
	}
}

func (c *collector) has(sql string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[sql]
}

// caller returns the function that runs a statement, without the path of its package. It returns "" if a test runs the
// statement. The helpers of package db do not count, because they run statements for others.
func caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	closure := ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		switch {
		case helper.MatchString(f.File):
		case test.MatchString(f.File):
			return closure
		case literal.MatchString(name):
			closure = cmp.Or(closure, name)
		default:
			return name
		}
	}
	return closure
}

// test and helper match files, literal matches functions.
var (
	test    = regexp.MustCompile(`_test\.go$|test/[^/]*\.go$`)
	helper  = regexp.MustCompile(`/pgx/|/db/dbtest/[a-z]+\.go$|/db/(rows|page)\.go$|(^|/src/)(runtime|sync)/|/sync@`)
	literal = regexp.MustCompile(`\.func\d|-range\d`)
)

// check returns an error that lists the statements that read rows of a tenant's table for more than one organization.
// It looks at the statements' plans: Postgres adds an equality with a parameter to each scan for which the equality
// follows, even through joins.
func (c *collector) check() error {
	ctx := context.Background()
	name, err := planning()
	if err != nil {
		return fmt.Errorf("a database to plan statements: %w", err)
	}
	pool, err := db.Connect(ctx, on(shared.url, name))
	if err != nil {
		return err
	}
	defer pool.Close()
	return errors.Join(c.unpinned(ctx, pool)...)
}

// planning returns the empty database in which all programs plan their statements. It is created once per schema.
func planning() (name string, err error) {
	err = admin(shared.url, func(ctx context.Context, conn *pgx.Conn) error {
		original, err := template(ctx, conn, shared.url) // holds the template's lock, so that one program makes the copy
		if err != nil {
			return err
		}
		name = original + "_planning"
		exists, err := hasDatabase(ctx, conn, name)
		if err != nil || exists {
			return err
		}
		_, err = conn.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+original+copying(conn))
		return err
	})
	return name, err
}

func (c *collector) unpinned(ctx context.Context, d db.DB) (errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(c.copied)) {
		_, table, _ := strings.Cut(key, " ")
		if !db.Shared(table) && !slices.Contains(c.copied[key], "org") {
			errs = append(errs, fmt.Errorf("%s copies into %s without org", key, table))
		}
	}
	tenants := func(table string) bool { return slices.Contains(migrations.Tables(), table) && !db.Shared(table) }
	for _, sql := range slices.Sorted(maps.Keys(c.from)) {
		from := c.from[sql]
		tables, err := unpinned(ctx, d, sql)
		across := len(tables) > 0 && acrossOrganizations[from] != ""
		if err != nil {
			errs = append(errs, fmt.Errorf("plan the statement of %s: %w:\n%s", from, err, sql))
		} else if len(tables) > 0 && !across {
			errs = append(errs, fmt.Errorf("%s reads %v of more than one organization:\n%s", from, tables, sql))
		}
		if why := refused(sql, across, tenants); why != "" {
			errs = append(errs, fmt.Errorf("a cluster refuses the statement of %s: %s:\n%s", from, why, sql))
		}
	}
	return errs
}

// unpinned returns the tenants' tables that a statement scans without a condition on the organization.
func unpinned(ctx context.Context, d db.DB, sql string) (tables []string, err error) {
	err = pgx.BeginFunc(ctx, d, func(tx pgx.Tx) error {
		prepared, err := tx.Prepare(ctx, "checked", sql)
		if err != nil {
			return err
		}
		defer tx.Conn().Deallocate(ctx, "checked") //nolint:errcheck // the transaction's error says what was wrong
		if _, err := tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
			return err
		}
		explain := `EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE checked`
		if n := len(prepared.ParamOIDs); n > 0 {
			explain += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
		}
		var text []byte
		if err := tx.QueryRow(ctx, explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			return err
		}
		var plans []struct{ Plan planNode }
		if err := json.Unmarshal(text, &plans); err != nil {
			return err
		}
		for _, p := range plans {
			tables = p.Plan.unpinned(tables)
		}
		return nil
	})
	return tables, err
}

// planNode is a node of a plan as EXPLAIN prints it.
type planNode struct {
	Type      string `json:"Node Type"`
	Schema    string
	Table     string `json:"Relation Name"`
	Alias     string
	IndexCond string `json:"Index Cond"`
	Recheck   string `json:"Recheck Cond"`
	Filter    string
	Plans     []planNode
}

// unpinned adds the tables that the node and its children scan without a condition on the organization. The condition
// compares with a parameter: from the row of another table, a cluster does not see on which node the organization is.
func (n planNode) unpinned(tables []string) []string {
	if n.Schema == "public" && n.Table != "" && n.Type != "ModifyTable" && !db.Shared(n.Table) {
		column := regexp.QuoteMeta(n.Alias) + `"?\.org`
		pinned := regexp.MustCompile(`\(` + column + ` = \(?(\$\d|\d)|\(\(?` + column + `\)::oid = \(?(\$\d|'\d|\d)`)
		if !pinned.MatchString(n.IndexCond + n.Recheck + n.Filter) {
			tables = append(tables, n.Table)
		}
	}
	for _, p := range n.Plans {
		tables = p.unpinned(tables)
	}
	return tables
}
