package erase

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// Limits of rewriting the tables after an erasure.
const (
	rewriteBytes  = 64 << 20         // a table that is larger, with its indexes, is not rewritten
	rewriteTime   = 30 * time.Second // per table
	rewriteRounds = 4                // attempts for tables that other sessions use
	rewritePause  = time.Second / 2  // between two rounds
)

// rewriter rewrites tables, and lets Postgres take new samples of their columns, as the role that owns them.
type rewriter struct {
	*pgx.Conn
	superuser bool
	ownsDB    bool
	deadKept  bool // a rewritten table still has old rows, because other sessions may read them
}

// newRewriter opens its own connection, because it reads the notices that Postgres sends about each table. The caller
// closes it.
func newRewriter(ctx context.Context, owner *pgxpool.Pool) (*rewriter, error) {
	r := &rewriter{}
	config := owner.Config().ConnConfig.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// VACUUM FULL says "3 dead row versions cannot be removed yet.", in the server's language.
		number, _, _ := strings.Cut(n.Detail, " ")
		dead, err := strconv.Atoi(number)
		r.deadKept = r.deadKept || err == nil && dead > 0
	}
	var err error
	if r.Conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	// As a superuser, keep Postgres from logging the tables that other sessions lock.
	err = r.QueryRow(ctx, `
		SELECT u.rolsuper, u.rolsuper OR pg_has_role(d.datdba, 'USAGE'),
		       CASE WHEN u.rolsuper THEN set_config('log_min_messages', 'error', false) ELSE '' END
		FROM pg_roles u, pg_database d
		WHERE u.rolname = current_user AND d.datname = current_database()`).Scan(&r.superuser, &r.ownsDB, new(string))
	if err != nil {
		return nil, errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// kept names where the text may still be after the rewriting.
type kept struct {
	files   []string // tables, pg_statistic among them, with the text in free space
	samples []string // tables with old samples of their columns

}

// rewriteAll rewrites the tables of organizations and renews the samples of their columns. It rewrites all tables,
// because rows that were deleted before the erasure may have had the text, too.
func (r *rewriter) rewriteAll(ctx context.Context) (k kept, err error) {
	tables, err := db.All[string](ctx, r, `
		SELECT c.relname::text FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND `+ofOrganizations+`
		ORDER BY c.relname`)
	if err != nil {
		return k, err
	}
	k.files = r.rewriteEach(ctx, tables)
	for _, name := range tables {
		if !r.analyze(ctx, name) {
			k.samples = append(k.samples, name)
		}
	}
	k.files = append(k.files, r.rewriteEach(ctx, []string{samplesTable})...)
	return k, ctx.Err()
}

// samplesTable is the table that holds Postgres' samples of columns.
const samplesTable = "pg_statistic"

// rewriteEach rewrites small tables. It returns the names of tables that may still have old rows: large ones, those
// that other sessions used in every round, and those with rows that other sessions may still read.
func (r *rewriter) rewriteEach(ctx context.Context, tables []string) (left []string) {
	left = tables
	for round := 0; len(left) > 0 && round < rewriteRounds; round++ {
		if round > 0 && !db.Pause(ctx, rewritePause) {
			break
		}
		left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { return r.rewrite(ctx, name) })
	}
	return left
}

// rewrite rewrites a small table unless another session uses it. It reports whether the table has no old rows.
func (r *rewriter) rewrite(ctx context.Context, name string) bool {
	if name == samplesTable && !r.ownsDB {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, rewriteTime)
	defer cancel()
	type file struct {
		Node  *uint32 `db:"node"`
		Bytes *int64  `db:"bytes"`
	}
	table := pgx.Identifier{name}.Sanitize()
	look := func() (file, error) {
		return db.One[file](ctx, r, `
			SELECT pg_relation_filenode(to_regclass($1)) AS node, pg_total_relation_size(to_regclass($1)) AS bytes`, table)
	}
	before, err := look()
	if err != nil || before.Node == nil || before.Bytes == nil || *before.Bytes > rewriteBytes {
		return false
	}
	r.deadKept = false
	if _, err := r.Exec(ctx, "VACUUM (FULL, SKIP_LOCKED, VERBOSE) "+table); err != nil || r.deadKept {
		return false
	}
	after, err := look()
	return err == nil && after.Node != nil && *after.Node != *before.Node
}

// analyze renews the samples of a table's columns, and reports whether no old samples are left. Postgres keeps the
// samples of a table that became empty; only a superuser can delete them.
func (r *rewriter) analyze(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, rewriteTime)
	defer cancel()
	table, old := pgx.Identifier{name}.Sanitize(), false
	err := db.Tx(ctx, r, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE `+table+` IN SHARE UPDATE EXCLUSIVE MODE`); err != nil {
			return err
		}
		if r.superuser {
			if _, err := tx.Exec(ctx, `
				DELETE FROM pg_statistic
				WHERE starelid = $1::text::regclass OR starelid IN (
					SELECT indexrelid FROM pg_index WHERE indrelid = $1::text::regclass)`, table); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `ANALYZE `+table); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			SELECT EXISTS (
				SELECT FROM pg_stats s JOIN pg_class c ON c.oid = $1::text::regclass AND c.reltuples = 0
				WHERE s.schemaname = current_schema() AND s.tablename = c.relname)`, table).Scan(&old)
	})
	return err == nil && !old
}
