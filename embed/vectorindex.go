package embed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// Index is the vector index of one space over a memory's table of vectors, which has the columns space_id and
// embedding, a halfvec. A search that names the space and its dimension literally, as the index does, may be answered
// by it; while it is being built, or is left half built, the database answers exactly.
type Index struct {
	Table string
	Space Space
}

// name is that of the index in the database; of the table's own indexes none ends in a number.
func (x Index) name() string { return fmt.Sprintf("%s_space_%d", x.Table, x.Space.ID) }

// Valid says whether the index is built.
func (x Index) Valid(ctx context.Context, d db.DB) (bool, error) {
	return db.One[bool](ctx, d, `
		SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid)`, x.name())
}

// Build builds the index, of about so many rows, on a connection of its own, and tells progress, if that is not nil,
// now and then how many rows are in it. It may take an hour, and holds up nobody who reads or writes. One index is
// built at a time, over all servers; built is false where another server builds one, or this one is there. What a
// builder left that was killed is built anew. When ctx ends, so does the building; when the server is killed, some
// seconds later.
func (x Index) Build(ctx context.Context, pool *pgxpool.Pool, rows int, progress func(done int64)) (built bool,
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
	if valid, err := x.Valid(ctx, pool); err != nil || valid {
		return false, err
	}
	if _, err := conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+x.name()); err != nil {
		return false, fmt.Errorf("drop what is left of index %s: %w", x.name(), err)
	}
	stop := x.watch(ctx, pool, conn.PgConn().PID(), progress)
	defer stop()
	if err := x.create(ctx, conn, rows); err != nil {
		return false, fmt.Errorf("build index %s: %w", x.name(), err)
	}
	return true, nil
}

// create builds with parallel workers, and without them where they get no shared memory, as in a container with
// Docker's 64 MB.
func (x Index) create(ctx context.Context, conn *pgx.Conn, rows int) error {
	if _, err := conn.Exec(ctx, `SET client_connection_check_interval = '5s'`); err != nil && ctx.Err() != nil {
		return err // else the platform has none
	}
	var err error
	for _, workers := range []int{2, 0} {
		err = x.createWith(ctx, conn, rows, workers)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "53100" && pg.Code != "53200" { // disk_full, out_of_memory
			return err
		}
		if _, err := conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+x.name()); err != nil {
			return err
		}
	}
	return err
}

func (x Index) createWith(ctx context.Context, conn *pgx.Conn, rows, workers int) error {
	for _, sql := range []string{
		fmt.Sprintf(`SET maintenance_work_mem = '%dMB'`, x.buildMB(rows)),
		fmt.Sprintf(`SET max_parallel_maintenance_workers = %d`, workers),
		fmt.Sprintf(`CREATE INDEX CONCURRENTLY %s ON %s USING hnsw ((embedding::halfvec(%d)) halfvec_ip_ops) WHERE space_id = %d`,
			x.name(), x.Table, x.Space.Dimension, x.Space.ID),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of the memory that a build takes. What does not fit is built on disk, several times slower.
const (
	leastBuildMB = 64
	mostBuildMB  = 512
	nodeBytes    = 1200 // of a row in the graph beside its vector
)

func (x Index) buildMB(rows int) int {
	return min(max(rows*(2*x.Space.Dimension+nodeBytes)>>20+1, leastBuildMB), mostBuildMB)
}

// progressEvery is the time between two reports.
const progressEvery = 30 * time.Second

// watch reports what a build has done until stop is called.
func (x Index) watch(ctx context.Context, d db.DB, pid uint32, progress func(done int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var done int64
			err := d.QueryRow(ctx, `SELECT tuples_done FROM pg_stat_progress_create_index WHERE pid = $1`, pid).Scan(&done)
			if err == nil {
				progress(done)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// Keep builds the index where that pays and it is not there; built says that it did. A space is indexed once it holds
// least rows, which is more than a search should read, and not while a tenth of them and more wait for their vectors,
// as waiting counts them: an index that is there makes each new row several times dearer than one that is built of all.
func (x Index) Keep(ctx context.Context, pool *pgxpool.Pool, least int, waiting func(context.Context) (int, error),
	progress func(done, total int)) (built bool, err error) {
	if valid, err := x.Valid(ctx, pool); err != nil || valid {
		return false, err
	}
	rows, err := db.One[int](ctx, pool, `SELECT count(*) FROM `+x.Table+` WHERE space_id = $1`, x.Space.ID)
	if err != nil || rows < least {
		return false, err
	}
	if n, err := waiting(ctx); err != nil || n*10 > rows {
		return false, err
	}
	return x.Build(ctx, pool, rows, func(done int64) {
		if progress != nil {
			progress(int(done), rows)
		}
	})
}

// clearRows is how many vectors one statement deletes.
const clearRows = 5000

// Clear deletes the vectors of the space, with their index, and says how many.
func (x Index) Clear(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	if err := x.Drop(ctx, pool); err != nil {
		return 0, err
	}
	for {
		tag, err := pool.Exec(ctx, `
			DELETE FROM `+x.Table+`
			WHERE space_id = $1 AND ctid = ANY (ARRAY(SELECT ctid FROM `+x.Table+` WHERE space_id = $1 LIMIT $2))`, x.Space.ID, clearRows)
		if err != nil || tag.RowsAffected() == 0 {
			return rows, err
		}
		rows += int(tag.RowsAffected())
	}
}

// Drop drops the index, if it is there, without holding up anybody. It is not for transactions.
func (x Index) Drop(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+x.name())
	return err
}

// Vectors is a memory's table of vectors: of rows with a key, of which they repeat the columns that searches filter by.
type Vectors struct {
	Endpoint *Endpoint
	Table    string   // of the vectors, with the columns space_id and embedding
	Row      string   // its column with the row's key
	Columns  []string // its columns that it repeats of the rows

	// Pending selects the number of rows that wait for a vector in the space $1.
	Pending string
	// IndexRows is the number of vectors from which a space is indexed.
	IndexRows int
}

// insert stores the vectors of rows, which are given as the values of Columns by their keys. COPY takes two thirds of
// the time of INSERT.
func (v Vectors) insert(ctx context.Context, tx pgx.Tx, space Space, rows map[int64][]any, vectors []Vector) error {
	var values [][]any
	for _, vector := range vectors {
		if row, locked := rows[vector.ID]; locked {
			values = append(values, append([]any{space.ID, vector.ID, Half(vector.Values)}, row...))
		}
	}
	columns := append([]string{"space_id", v.Row, "embedding"}, v.Columns...)
	_, err := tx.CopyFrom(ctx, pgx.Identifier{v.Table}, columns, pgx.CopyFromRows(values))
	return db.Error(err)
}

// Index keeps the index of the active space's vectors, as Index.Keep does.
func (v Vectors) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool,
	err error) {
	space, ok := v.Endpoint.Space()
	if !ok {
		return false, nil
	}
	pending := func(ctx context.Context) (int, error) { return db.One[int](ctx, pool, v.Pending, space.ID) }
	return Index{Table: v.Table, Space: space}.Keep(ctx, pool, v.IndexRows, pending, progress)
}

// ClearUnused deletes the vectors of spaces that no server has used for a week, with their indexes, and returns their
// number. It calls before with these spaces first, if there are any.
func (v Vectors) ClearUnused(ctx context.Context, pool *pgxpool.Pool,
	before func(context.Context, []Space) error) (rows int, err error) {
	unused, err := v.Endpoint.Unused(ctx, pool)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	if err := before(ctx, unused); err != nil {
		return 0, err
	}
	for _, space := range unused {
		n, err := Index{Table: v.Table, Space: space}.Clear(ctx, pool)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
