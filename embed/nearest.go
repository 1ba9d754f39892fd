package embed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// A search does not wait long for the endpoint, and after it failed, for a while not at all.
const (
	queryWait = 5 * time.Second
	restAfter = 15 * time.Second
)

// Query embeds the text of a search; nil where no endpoint is configured. An error is the beginning of a sentence for a model.
func (d *Dense) Query(ctx context.Context, text string) ([]float32, error) {
	if d == nil {
		return nil, nil
	}
	if _, ok := d.Space(); !ok {
		return nil, errors.New("The embeddings endpoint has not answered yet")
	}
	if until := d.rest.Load(); until != nil && time.Now().Before(*until) {
		return nil, errNoAnswer
	}
	waiting, cancel := context.WithTimeout(ctx, queryWait)
	defer cancel()
	vectors, err := d.queries().Embed(waiting, []Item{{ID: 1, Text: text}})
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil, errors.New("The embeddings endpoint refused the query")
	}
	if err != nil {
		if ctx.Err() == nil {
			until := time.Now().Add(restAfter)
			d.rest.Store(&until)
		}
		return nil, errNoAnswer
	}
	if len(vectors) == 0 {
		return nil, nil
	}
	return vectors[0].Values, nil
}

// Question embeds the text of a search as an argument of Nearest; q is nil where there is none, with a sentence on why if there should be.
func (d *Dense) Question(ctx context.Context, text string) (q any, note string) {
	vector, err := d.Query(ctx, text)
	space, _ := d.Space()
	switch {
	case err != nil:
		return nil, fmt.Sprintf("%v, so this was ranked by words alone.", err)
	case vector == nil:
		return nil, ""
	case len(vector) != space.Dimension:
		return nil, "The embeddings endpoint answers with another model's vectors, so this was ranked by words alone."
	}
	return Half(vector), ""
}

var errNoAnswer = errors.New("The embeddings endpoint did not answer")

func (d *Dense) queries() Embedder {
	if d.Queries != nil {
		return d.Queries
	}
	return d.Embedder
}

// Distance is what the one form of a vector search orders by: the distance of embedding from @q, less for the nearer. The space is literal in
// the statement, `space_id = …`, and so is its dimension, as the space's index names them. The exact form orders by an expression that no
// index has.
func (s Space) Distance(exact bool) string {
	distance := fmt.Sprintf("embedding::halfvec(%d) <#> @q::halfvec(%[1]d)", s.Dimension)
	if exact {
		return "(" + distance + ") + 0"
	}
	return distance
}

// alongSettings make a scan of a vector index go on along it until enough rows are of the scope.
const alongSettings = `SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true)`

// Along reads the hits of a vector search through the space's index, in one round trip: in a transaction of its own, or as part of d's. The
// order it yields is nearly right; Fuse puts it right.
func Along(ctx context.Context, d db.DB, sql string, args pgx.StrictNamedArgs) (hits []Hit, err error) {
	var batch pgx.Batch
	batch.Queue(alongSettings)
	batch.Queue(sql, args).Query(func(rows pgx.Rows) error {
		hits, err = pgx.CollectRows(rows, pgx.RowToStructByName[Hit])
		return err
	})
	return hits, db.Error(d.SendBatch(ctx, &batch).Close())
}

// Nearest is a search of a memory's table of vectors v for the rows of a scope that are nearest to @q: ArmRows of them.
type Nearest struct {
	Table string
	Key   string // the column that identifies a row
	Space Space
	Where string // the scope, as a condition on v
	Args  pgx.StrictNamedArgs
}

// SQL is the statement; the exact one reads all of the scope.
func (n Nearest) SQL(exact bool) string {
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT v.%s AS id, %s AS distance FROM %s v
			WHERE v.space_id = %d AND%s
			ORDER BY distance
			LIMIT %d
		) nearest`, n.Key, n.Space.Distance(exact), n.Table, n.Space.ID, n.Where, ArmRows)
}

// Read searches exactly, or through the space's index where the scope is large, and exactly again where that finds fewer than least.
func (n Nearest) Read(ctx context.Context, d db.DB, large bool, least int) ([]Hit, error) {
	if large {
		hits, err := Along(ctx, d, n.SQL(false), n.Args)
		if err != nil || len(hits) >= least {
			return hits, err
		}
	}
	return db.All[Hit](ctx, d, n.SQL(true), n.Args)
}
