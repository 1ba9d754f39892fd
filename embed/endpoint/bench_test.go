package endpoint_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
)

// prose is about 800 characters of English with some code, as long as a chunk.
var prose = strings.Repeat(
	"The connection pool keeps idle connections open until ReadTimeout passes; "+
		"afterwards a background worker closes them. ",
	3,
) +
	"func (p *Pool) closeIdle(ctx context.Context) error { for _, c := range p.idle_conns { if " +
	"c.LastUsed.Before(p.deadline) { c.Close() } } } " +
	"When children of a process were started by someone else, their parents went away before, and the operating system " +
	"reparents them " +
	"to the init process. Loading the configuration from config/server.yaml fails if PostgreSQL 15 is not reachable at " +
	"port 5432."

func BenchmarkDocument(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(prose)))
	for b.Loop() {
		lexicon.Document(prose)
	}
}

func BenchmarkDocumentUnicode(b *testing.B) {
	text := strings.Repeat("Größe und Länge der naïve façade — ", 12) + strings.Repeat("記憶は失われない。", 12)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		lexicon.Document(text)
	}
}

// rows is a batch of rows that always wait.
type rows []embed.Item

func (r rows) Items() []embed.Item { return r }

func (r rows) Lock(context.Context, pgx.Tx) (map[int64][]any, error) {
	locked := map[int64][]any{}
	for _, row := range r {
		locked[row.ID] = []any{1}
	}
	return locked, nil
}

func (r rows) Finish(ctx context.Context, tx pgx.Tx, _ []*endpoint.RefusedError) error {
	_, err := tx.Exec(ctx, `DELETE FROM row_vectors`)
	return err
}

func (r rows) Note(context.Context, string) error { return nil }

// BenchmarkStoreVectors stores 128 vectors of 384 numbers, and deletes them.
func BenchmarkStoreVectors(b *testing.B) {
	pool := dbtest.Owner(b, dbtest.New(b))
	if _, err := pool.Exec(b.Context(), `
		CREATE TABLE rows (key bigint PRIMARY KEY);
		CREATE TABLE row_vectors (
			space_id smallint REFERENCES embedding_spaces (id),
			row_key bigint REFERENCES rows (key),
			org integer,
			embedding halfvec,
			PRIMARY KEY (row_key, space_id)
		);
		INSERT INTO rows SELECT generate_series(1, 128)`); err != nil {
		b.Fatal(err)
	}
	space, err := endpoint.UseSpace(b.Context(), pool, "provider", "model", 384)
	if err != nil {
		b.Fatal(err)
	}
	batch, vectors := make(rows, 128), make([]embed.Vector, 128)
	for i := range batch {
		batch[i].ID = int64(i + 1)
		vectors[i] = embed.Vector{ID: batch[i].ID, Values: embedtest.Direction(prose, 384)}
	}
	encoder := impatient(func(context.Context, []embed.Item) ([]embed.Vector, error) { return vectors, nil })
	encoder.Use(space)
	worker := endpoint.Worker[endpoint.OwnerJob[rowKind]]{DB: pool,
		Vectors: endpoint.Vectors{Endpoint: encoder, Table: "row_vectors", Row: "row_key", Columns: []string{"org"}},
		Next: func(context.Context, endpoint.OwnerJob[rowKind], endpoint.Space) (endpoint.Batch, error) {
			return batch, nil
		}}
	for b.Loop() {
		if _, err := worker.Once(b.Context(), endpoint.OwnerJob[rowKind]{}, space); err != nil {
			b.Fatal(err)
		}
	}
}

type rowKind struct{}

func (rowKind) Kind() string { return "rows" }
