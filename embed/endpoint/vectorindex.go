package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Vectors is a memory's table of vectors. Each vector belongs to a row with a key, and repeats the row's columns that
// searches filter by.
type Vectors struct {
	Endpoint *Endpoint
	Table    string   // name; it has the columns space_id and embedding
	Row      string   // its column with the row's key
	Columns  []string // its columns that repeat columns of the row

	// Pending selects the number of rows that wait for a vector in the space $1.
	Pending string
	// IndexRows is how many vectors a space needs to be indexed.
	IndexRows int
}

// insert stores the vectors of rows. rows maps key → values of Columns. COPY takes two thirds of the time of INSERT.
func (v Vectors) insert(ctx context.Context, tx pgx.Tx, space Space, rows map[int64][]any,
	vectors []embed.Vector) error {
	var values [][]any
	for _, vector := range vectors {
		if row, locked := rows[vector.ID]; locked {
			values = append(values, append([]any{space.ID, vector.ID, pgvector.NewHalfVector(vector.Values)}, row...))
		}
	}
	columns := append([]string{"space_id", v.Row, "embedding"}, v.Columns...)
	_, err := tx.CopyFrom(ctx, pgx.Identifier{v.Table}, columns, pgx.CopyFromRows(values))
	return db.Error(err)
}

// answer is what the endpoint returned for texts.
type answer struct {
	vectors []embed.Vector
	refused []*RefusedError
}

// store stores the vectors of those rows of a batch that did not change, and returns their number.
func (v Vectors) store(ctx context.Context, tx pgx.Tx, space Space, batch Rows, got answer) (stored int, err error) {
	rows, err := batch.Lock(ctx, tx)
	if err != nil {
		return 0, err
	}
	if err := v.insert(ctx, tx, space, rows, got.vectors); err != nil {
		return 0, err
	}
	refused := slices.DeleteFunc(slices.Clone(got.refused), func(r *RefusedError) bool { return rows[r.ID] == nil })
	for _, vector := range got.vectors {
		if rows[vector.ID] != nil {
			stored++
		}
	}
	return stored, batch.Finish(ctx, tx, refused)
}

// Index builds the index of the active space's vectors if it is missing and worth its cost. built reports whether it
// did. pool belongs to the owner of the table. A space is indexed if it has at least IndexRows vectors, and less than a
// tenth as many rows wait for theirs: inserting a row into an existing index costs several times its share of a bulk
// build. If may is not nil, Index calls it with the number of vectors, and builds only if it returns true. If progress
// is not nil, Index calls it now and then with the number of indexed rows.
func (v Vectors) Index(ctx context.Context, pool *pgxpool.Pool, may func(rows int) bool,
	progress func(done, total int)) (built bool, err error) {
	space, ok := v.Endpoint.Space()
	if !ok {
		return false, nil
	}
	return v.index(ctx, pool, space, may, progress)
}

// IndexAll builds the missing indexes of all spaces that a server used in the last week, each as Index does, and
// returns their number. It drops the indexes of all other spaces.
func (v Vectors) IndexAll(ctx context.Context, pool *pgxpool.Pool) (built int, err error) {
	type space struct {
		Space
		Unused bool `db:"unused"`
	}
	spaces, err := db.All[space](ctx, pool, `
		SELECT id, provider, model, dimension, used_at < now() - $1::interval AS unused
		FROM embedding_spaces ORDER BY id`, spaceLife)
	if err != nil {
		return 0, err
	}
	for _, s := range spaces {
		if s.Unused {
			err = Index{Table: v.Table, Space: s.Space}.drop(ctx, pool)
		} else {
			var one bool
			if one, err = v.index(ctx, pool, s.Space, nil, nil); one {
				built++
			}
		}
		if err != nil {
			return built, err
		}
	}
	return built, nil
}

// index builds the index of a space for Index.
func (v Vectors) index(ctx context.Context, pool *pgxpool.Pool, space Space, may func(rows int) bool,
	progress func(done, total int)) (built bool, err error) {
	x := Index{Table: v.Table, Space: space}
	if valid, err := x.valid(ctx, pool); err != nil || valid {
		return false, err
	}
	rows, err := db.One[int](ctx, pool, `SELECT count(*) FROM `+v.Table+` WHERE space_id = $1`, space.ID)
	if err != nil || rows < v.IndexRows || may != nil && !may(rows) {
		return false, err
	}
	if waiting, err := db.One[int](ctx, pool, v.Pending, space.ID); err != nil || waiting*10 > rows {
		return false, err
	}
	return x.Build(ctx, pool, rows, progress)
}

// clearRows is how many vectors one statement deletes.
const clearRows = 5000

// ClearUnused deletes the vectors of spaces that no server has used for a week, and returns their number. If pool
// belongs to the tables' owner, it also drops their indexes. If there are such spaces, it first calls before with their
// ids.
func (v Vectors) ClearUnused(ctx context.Context, pool *pgxpool.Pool,
	before func(ctx context.Context, unused []int16) error) (rows int, err error) {
	active, ok := v.Endpoint.Space()
	if !ok {
		return 0, nil
	}
	unused, err := unusedSpaces(ctx, pool, active)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	if err := before(ctx, unused); err != nil {
		return 0, err
	}
	orgs, err := db.Orgs(ctx, pool)
	if err != nil {
		return 0, err
	}
	for _, id := range unused {
		if err := (Index{Table: v.Table, Space: Space{ID: id}}).drop(ctx, pool); err != nil {
			return rows, err
		}
		for _, org := range orgs {
			n, err := v.clear(ctx, pool, org, id)
			if rows += n; err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// clear deletes an organization's vectors in a space, and returns their number.
func (v Vectors) clear(ctx context.Context, d db.DB, org db.Org, space int16) (rows int, err error) {
	for {
		tag, err := d.Exec(ctx, `
			DELETE FROM `+v.Table+`
			WHERE org = $1 AND space_id = $2 AND ctid = ANY (ARRAY(
				SELECT ctid FROM `+v.Table+` WHERE org = $1 AND space_id = $2 LIMIT $3))`, org, space, clearRows)
		if err != nil || tag.RowsAffected() == 0 {
			return rows, err
		}
		rows += int(tag.RowsAffected())
	}
}

// Index is the vector index of one space in a memory's table of vectors. It may answer a search that names the space
// and its dimension literally, as the index does. While it is being built, or if it is only half built, the database
// answers without it, exactly.
type Index struct {
	Table string
	Space Space
}

// name returns the index's name in the database. No other index of the table has a name that ends in a number.
func (x Index) name() string { return fmt.Sprintf("%s_space_%d", x.Table, x.Space.ID) }

// valid reports whether the index is built.
func (x Index) valid(ctx context.Context, d db.DB) (bool, error) {
	return db.One[bool](ctx, d, `
		SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid)`, x.name())
}

// drop drops the index without locking the table, if it exists and belongs to d's role. It cannot run in a transaction.
func (x Index) drop(ctx context.Context, d db.DB) error {
	owned, err := db.One[bool](ctx, d, `
		SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass($1) AND pg_has_role(relowner, 'USAGE'))`, x.name())
	if err != nil || !owned {
		return err
	}
	_, err = d.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+x.name())
	return err
}

// Build builds the index of about the given number of rows, on its own connection. It may take an hour, and locks out
// neither readers nor writers. All servers together build one index at a time: built is false if another server builds
// one, or if this index exists. An index that a killed server left half built is built again. The build ends with ctx,
// or some seconds after the server is killed.
func (x Index) Build(ctx context.Context, pool *pgxpool.Pool, rows int, progress func(done, total int)) (built bool,
	err error) {
	acquired, err := pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("build index %s: %w", x.name(), db.Error(err))
	}
	conn := acquired.Hijack() // its settings and its lock go with it
	defer conn.Close(context.WithoutCancel(ctx))
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(db.LockIndex)).Scan(&mine); err != nil || !mine {
		return false, err
	}
	// After the connection is closed, it takes some time until the lock is released. Until then the next index would not
	// be built.
	defer func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(db.LockIndex))
	}()
	if valid, err := x.valid(ctx, pool); err != nil || valid {
		return false, err
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch(watching, pool, conn.PgConn().PID(), rows, progress)
	}()
	err = x.create(ctx, conn, rows)
	stop()
	<-watched
	if err == nil {
		_, err = conn.Exec(ctx, `ANALYZE `+x.Table)
	}
	if err != nil {
		return false, fmt.Errorf("build index %s: %w", x.name(), err)
	}
	return true, nil
}

// progressEvery is the time between two progress reports of a build.
const progressEvery = 30 * time.Second

// watch reports how many rows a Postgres process has indexed, until ctx ends.
func watch(ctx context.Context, d db.DB, pid uint32, rows int, progress func(done, total int)) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if done, err := db.One[int](ctx, d, `
			SELECT tuples_done FROM pg_stat_progress_create_index WHERE pid = $1`, pid); err == nil && progress != nil {
			progress(done, rows)
		}
	}
}

// Limits of the memory for a build. A larger graph is built on disk, several times slower.
const (
	leastBuildMB = 64
	mostBuildMB  = 512
	nodeBytes    = 1200 // bytes of a row in the graph, besides its vector
)

// create builds with parallel workers. Without enough shared memory for them, as in a container with Docker's 64 MB, it
// builds without them.
func (x Index) create(ctx context.Context, conn *pgx.Conn, rows int) error {
	if _, err := conn.Exec(ctx, `SET client_connection_check_interval = '5s'`); err != nil && ctx.Err() != nil {
		return err // otherwise the platform does not have this setting
	}
	if err := x.drop(ctx, conn); err != nil {
		return err
	}
	megabytes := min(max(rows*(2*x.Space.Dimension+nodeBytes)>>20+1, leastBuildMB), mostBuildMB)
	var err error
	for _, workers := range []string{"2", "0"} {
		if _, err = conn.Exec(ctx, `
			SELECT set_config('maintenance_work_mem', $1, false), set_config('max_parallel_maintenance_workers', $2, false)`,
			fmt.Sprintf("%dMB", megabytes), workers); err == nil {
			_, err = conn.Exec(ctx, fmt.Sprintf(`
				CREATE INDEX CONCURRENTLY %s ON %s USING hnsw ((embedding::halfvec(%d)) halfvec_ip_ops)
				WHERE space_id = %d`, x.name(), x.Table, x.Space.Dimension, x.Space.ID))
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != pgerrcode.DiskFull && pg.Code != pgerrcode.OutOfMemory {
			return err
		}
		if err := x.drop(ctx, conn); err != nil {
			return err
		}
	}
	return err
}
