package files_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files"
)

// clustered gives a folder n chunks with vectors around the given number of centres. It returns some more such vectors.
func (fx *fixture) clustered(folder files.Folder, space endpoint.Space, n, centres, queries int) [][]float32 {
	fx.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	around := make([][]float64, centres)
	for i := range around {
		around[i] = make([]float64, space.Dimension)
		for k := range around[i] {
			around[i][k] = random.NormFloat64()
		}
	}
	next := func() []float32 {
		v := make([]float32, space.Dimension)
		for k, x := range around[random.IntN(centres)] {
			v[k] = float32(x + 0.8*random.NormFloat64())
		}
		return embed.Normalize(v)
	}
	fx.crowd(folder, n)
	keys, err := db.All[int64](fx.t.Context(), fx.pool, `SELECT key FROM chunks WHERE folder_key = $1 ORDER BY key`,
		folder.Key)
	if err != nil {
		fx.t.Fatal(err)
	}
	rows := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		return []any{space.ID, keys[i], fx.org, folder.Key, pgvector.NewHalfVector(next())}, nil
	})
	if _, err := fx.pool.CopyFrom(fx.t.Context(), pgx.Identifier{"chunk_vectors"},
		[]string{"space_id", "chunk_key", "org", "folder_key", "embedding"}, rows); err != nil {
		fx.t.Fatal(err)
	}
	queryVectors := make([][]float32, queries)
	for i := range queryVectors {
		queryVectors[i] = next()
	}
	return queryVectors
}

// An index covers the vectors of all organizations in a space. The table's owner builds it, and all servers together
// build one at a time. So these tests have their own database and run one after the other.
func TestIndexesOfVectors(t *testing.T) {
	t.Parallel()
	database := newOwned(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, owned)
	}{
		{"searches are planned by the number of rows", searchPlans}, // before other tests add rows
		{"all spaces are indexed by the owner", allSpacesAreIndexedByTheOwner},
		{"a dense space is indexed", aDenseSpaceIsIndexed},
		{"an index that is half built is built anew", anIndexThatIsHalfBuiltIsBuiltAnew},
		{"a space that is still filled is not indexed", aSpaceThatIsStillFilledIsNotIndexed},
		{"unused spaces are cleared", unusedSpacesAreCleared},
		{"a scope far from the query is found", aScopeFarFromTheQueryIsFound},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, database) })
	}
}

// owned is a database: a pool for it, and one for the role that owns its tables.
type owned struct{ pool, owner *pgxpool.Pool }

// newOwned returns a test's own database, in which Postgres makes no statistics by itself.
func newOwned(t *testing.T) owned {
	t.Helper()
	pool := dbtest.New(t)
	database := owned{pool, dbtest.Owner(t, pool)}
	for _, table := range []string{"chunks", "chunk_vectors", "files"} {
		if _, err := database.owner.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	return database
}

// dense returns a fixture in the database with an endpoint and its space, and without workers.
func (in owned) dense(t *testing.T, dimension int) (*fixture, *endpoint.Endpoint, endpoint.Space) {
	t.Helper()
	e := embedtest.New(t, dimension)
	endpoint := e.Endpoint(t)
	fx := newFixtureIn(t, in.pool, files.Options{Endpoint: endpoint})
	space := fx.space(e, "fake")
	endpoint.Use(space)
	return fx, endpoint, space
}

// index builds a space's index as the server does.
func (in owned) index(t *testing.T, space endpoint.Space) {
	t.Helper()
	built, err := endpoint.Index{Table: "chunk_vectors", Space: space}.Build(t.Context(), in.owner, 1000, nil)
	if err != nil || !built {
		t.Fatalf("the index was built: %v (%v)", built, err)
	}
}

// A space is indexed once it is large enough, and only once. Searches use the index, find as many as there are, and
// nearly all of the nearest.
func aDenseSpaceIsIndexed(t *testing.T, database owned) {
	query := &fixedQuery{}
	fx, endpoint, space := database.dense(t, 96)
	endpoint.Queries = query
	folder, small := fx.folder("f"), fx.folder("small")
	queries := fx.clustered(folder, space, 1500, 30, 25)
	fx.clustered(small, space, 30, 3, 0)
	fx.SetIndexRows(2000)
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Fatalf("below the threshold an index was built: %v (%v)", built, err)
	}
	fx.SetIndexRows(1000)
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); !built || err != nil {
		t.Fatalf("an index was built: %v (%v)", built, err)
	}
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Fatalf("an index was built again: %v (%v)", built, err)
	}
	found, wanted := 0, 0
	for _, q := range queries {
		query.vector = q
		fx.SetIndexRows(1 << 40)
		exact := fx.nearest(folder.Key)
		fx.SetIndexRows(1000)
		near := fx.nearest(folder.Key)
		if len(near) != rank.MeaningRows {
			t.Errorf("%d rows through the index, want %d", len(near), rank.MeaningRows)
		}
		for _, id := range exact[:10] {
			wanted++
			if slices.Contains(near[:10], id) {
				found++
			}
		}
	}
	if recall := float64(found) / float64(wanted); recall < 0.95 {
		t.Errorf("recall@10 is %.3f, want 0.95 and more", recall)
	}
	fx.SetIndexRows(10)
	if near := fx.nearest(small.Key); len(near) != 30 {
		t.Errorf("of a folder of 30 among 1,530, %d were found", len(near))
	}
}

// The owner's program builds the missing indexes of all spaces in use. It drops the indexes of the others; a server
// that owns no table deletes their vectors.
func allSpacesAreIndexedByTheOwner(t *testing.T, database owned) {
	fx, _, space := database.dense(t, 16)
	ctx := t.Context()
	other, err := endpoint.UseSpace(ctx, fx.pool, "another", "model", 16)
	if err != nil {
		t.Fatal(err)
	}
	fx.clustered(fx.folder("f"), space, 200, 4, 0)
	fx.clustered(fx.folder("g"), other, 300, 4, 0)
	for _, c := range []struct{ indexRows, want int }{{250, 1}, {250, 0}, {100, 1}} {
		fx.SetIndexRows(c.indexRows)
		if built, err := fx.IndexAll(ctx, database.owner); built != c.want || err != nil {
			t.Errorf("from %d vectors on: %d indexes were built, %v; want %d", c.indexRows, built, err, c.want)
		}
	}
	name := fmt.Sprintf("chunk_vectors_space_%d", other.ID)
	fx.exec(`UPDATE embedding_spaces SET used_at = now() - interval '8 days' WHERE id = $1`, other.ID)
	if n, err := fx.ClearSpaces(ctx, fx.pool); n != 300 || err != nil {
		t.Errorf("a server that owns nothing deleted %d vectors, %v; want 300", n, err)
	}
	for _, left := range []int{1, 0} {
		if n := fx.count(`SELECT count(*) FROM pg_class WHERE relname = $1`, name); n != left {
			t.Errorf("%d indexes of the unused space are there, want %d", n, left)
		}
		if _, err := fx.IndexAll(ctx, database.owner); err != nil {
			t.Error(err)
		}
	}
}

// fixedQuery is an embedder that returns one vector for every text.
type fixedQuery struct{ vector []float32 }

func (f *fixedQuery) Embed(_ context.Context, items []embed.Item) ([]embed.Vector, error) {
	return []embed.Vector{{ID: items[0].ID, Values: f.vector}}, nil
}

// nearest returns the keys of a folder's chunks by meaning, the best first.
func (fx *fixture) nearest(folder int64) []int64 {
	fx.t.Helper()
	keys, err := files.ByMeaning(fx.Store, fx.t.Context(), fx.org, folder)
	if err != nil {
		fx.t.Fatal(err)
	}
	return keys
}

// An index that a killed server left unfinished is built again. While another server builds, this one does not.
func anIndexThatIsHalfBuiltIsBuiltAnew(t *testing.T, database owned) {
	fx, _, space := database.dense(t, 16)
	fx.SetIndexRows(100)
	fx.clustered(fx.folder("f"), space, 200, 4, 0)
	database.index(t, space)
	name := fmt.Sprintf("chunk_vectors_space_%d", space.ID)
	if _, err := database.owner.Exec(t.Context(), `UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::regclass`,
		name); err != nil {
		t.Fatal(err)
	}
	other, err := fx.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, db.LockIndex); err != nil {
		t.Fatal(err)
	}
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Errorf("beside another server an index was built: %v (%v)", built, err)
	}
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, db.LockIndex); err != nil {
		t.Fatal(err)
	}
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); !built || err != nil {
		t.Errorf("the index was built anew: %v (%v)", built, err)
	}
	if n := fx.count(`SELECT count(*) FROM pg_index WHERE indexrelid = $1::regclass AND indisvalid`, name); n != 1 {
		t.Errorf("the index is valid: %d", n)
	}
	embedtest.Eventually(t, "the builder's lock is free", func() bool {
		return fx.count(`
			SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objid = $1`, db.LockIndex) == 0
	})
}

// A space is not indexed while most of its vectors are still missing.
func aSpaceThatIsStillFilledIsNotIndexed(t *testing.T, database owned) {
	fx, _, space := database.dense(t, 16)
	fx.SetIndexRows(100)
	folder := fx.folder("f")
	fx.clustered(folder, space, 200, 4, 0)
	wait := func(chunks int) {
		t.Helper()
		fx.exec(`
			INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key)
			SELECT min(key), $2, 1, 0, $3, $1, min(folder_key) FROM files WHERE org = $1
			ON CONFLICT (org, file_key, space_id, generation, first_ordinal) DO UPDATE SET end_ordinal = $3`,
			fx.org, space.ID, chunks)
	}
	wait(21)
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Errorf("while 21 of 221 wait an index was built: %v (%v)", built, err)
	}
	wait(20)
	fx.exec(`
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256)
		VALUES ($1, $2, 'new.txt', 'new.txt', 'text/plain', 100, '')`, fx.org, folder.Key)
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Errorf("while 20 wait and a file is to be parsed an index was built: %v (%v)", built, err)
	}
	fx.exec(`UPDATE files SET error = 'unreadable' WHERE org = $1 AND name = 'new.txt'`, fx.org)
	if built, err := fx.Index(t.Context(), database.owner, nil, nil); !built || err != nil {
		t.Errorf("while 20 of 220 wait an index was built: %v (%v)", built, err)
	}
}

// If no server has used a model for a week, its vectors and their index are deleted. Those in use stay.
func unusedSpacesAreCleared(t *testing.T, database owned) {
	fx, _, space := database.dense(t, 16)
	ctx := t.Context()
	old, err := endpoint.UseSpace(ctx, fx.pool, "before", "old", 16)
	if err != nil {
		t.Fatal(err)
	}
	fx.clustered(fx.folder("old"), old, 300, 4, 0)
	fx.clustered(fx.folder("new"), space, 20, 4, 0)
	database.index(t, old)
	clear := func(age string) int {
		t.Helper()
		if _, err := fx.pool.Exec(ctx, `
			UPDATE embedding_spaces SET used_at = now() - $1::text::interval
			WHERE id IN ($2, $3)`, age, old.ID, space.ID); err != nil {
			t.Fatal(err)
		}
		n, err := fx.ClearSpaces(ctx, database.owner)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := clear("6 days"); n != 0 {
		t.Errorf("after 6 days %d vectors were cleared away", n)
	}
	if n := clear("8 days"); n != 300 {
		t.Errorf("after 8 days %d vectors were cleared away, want the 300 of the old model", n)
	}
	if n := fx.count(`SELECT count(*) FROM pg_class WHERE relname = $1`,
		fmt.Sprintf("chunk_vectors_space_%d", old.ID)); n != 0 {
		t.Error("the old model's index is still there")
	}
	if n := fx.rows("chunk_vectors", fmt.Sprint("space_id = ", space.ID)); n != 20 {
		t.Errorf("of the vectors in use %d are left, want 20", n)
	}
}

// A scope has 2 % of the rows, all far from the query; the rest are near it. An index would not find them.
func aScopeFarFromTheQueryIsFound(t *testing.T, database owned) {
	scale.NotRaced(t)
	fx, _, space := database.dense(t, 16)
	fx.stock("near", scale.Of(1_470, 14_700), &space,
		func(i int) string { return fmt.Sprintf("apples and pears number %d", i) })
	far := fx.stock("far", scale.Of(60, 300), &space,
		func(i int) string { return fmt.Sprintf("unrelated granite quarry entry %d", i) })
	database.index(t, space)
	agent := fx.agentWith(far)
	for name, rows := range map[string]int{"exact": 50_000, "through the index": 10} {
		fx.SetIndexRows(rows)
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "apples and pears", Limit: 50})
		if err != nil || len(got.Hits) != 50 {
			t.Errorf("%s: got %d hits (%v), want 50", name, len(got.Hits), err)
		}
		for _, h := range got.Hits {
			if h.FileName != "far/stock.txt" {
				t.Errorf("%s: found %s", name, h.FileName)
			}
		}
	}
}

func searchPlans(t *testing.T, database owned) {
	fx, endpoint, space := database.dense(t, 16)
	agent := fx.agentWith(fx.stock("f", 1500, &space,
		func(i int) string { return fmt.Sprintf("entry %d about topic %d", i, i%50) }))
	database.index(t, space)
	plans := dbtest.NewPlans(t, fx.pool)
	store := fx.newStore(plans, files.Options{Endpoint: endpoint})
	vectors := fmt.Sprintf("chunk_vectors_space_%d", space.ID)
	for _, c := range []struct {
		name             string
		rows             int
		table, has, lack string
	}{
		{"few rows are ranked by meaning exactly", 50_000, "chunk_vectors", "chunk_vectors", vectors},
		{"many rows are ranked by meaning through the space's index", 1000, "chunk_vectors", vectors, ""},
		{"few rows are ranked by words exactly", 50_000, "r.lex", "chunks", "chunks_terms"},
		{"many rows are ranked by words through the index on terms", 1000, "@terms", "chunks_terms", ""},
	} {
		store.SetIndexRows(c.rows)
		if _, err := store.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "77", Limit: 1}); err != nil {
			t.Fatal(err)
		}
		if plan := plans.Take(c.table); !strings.Contains(plan, c.has) || c.lack != "" && strings.Contains(plan, c.lack) {
			t.Errorf("%s: want %q and not %q in\n%s", c.name, c.has, c.lack, plan)
		}
	}
}
