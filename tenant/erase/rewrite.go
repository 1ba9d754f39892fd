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

// Bounds of the rewriting of tables after an erasure.
const (
	rewriteBytes  = 64 << 20         // a larger table, with its indexes, is not written anew
	rewriteTime   = 30 * time.Second // for one table
	rewriteRounds = 4                // over the tables that other sessions use
	rewritePause  = time.Second / 2  // between two rounds
)

// rewriter writes tables anew, and takes Postgres' samples of their columns anew, as the role that owns them.
type rewriter struct {
	*pgx.Conn
	superuser bool
	ownsDB    bool
	deadKept  bool // a table that was written anew has rows still that other sessions may read
}

// newRewriter opens a connection of its own: it reads what Postgres says of each table. The caller closes it.
func newRewriter(ctx context.Context, owner *pgxpool.Pool) (*rewriter, error) {
	r := &rewriter{}
	config := owner.Config().ConnConfig.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// VACUUM FULL says "3 dead row versions cannot be removed yet.", in the language of the server.
		number, _, _ := strings.Cut(n.Detail, " ")
		dead, err := strconv.Atoi(number)
		r.deadKept = r.deadKept || err == nil && dead > 0
	}
	var err error
	if r.Conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	// Of a superuser, Postgres does not log the tables that other sessions use.
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

// kept is what has the text still after the rewriting.
type kept struct {
	files   []string // tables, and pg_statistic, with the text in free space
	samples []string // tables with old samples of columns

}

// rewriteAll writes the tables of organizations anew, with Postgres' samples of their columns: rows that were deleted
// before the erasure may have had the text, too.
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

// samplesTable is the table of Postgres' samples of columns.
const samplesTable = "pg_statistic"

// rewriteEach writes small tables anew, and returns the names of those that may have old rows still: a large one, one
// that another session was at work on in each round, or one with rows that another session may read.
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

// rewrite writes a small table anew unless another session is at work on it, and reports whether it has no old rows.
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

// analyze takes the samples of a table's columns anew, and reports whether no old ones are left. Postgres keeps the
// samples of a table that became empty; only a superuser deletes them.
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
