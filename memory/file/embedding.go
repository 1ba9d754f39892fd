package file

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

type memoryFiles struct{}

// Kind implements endpoint.Kind.
func (memoryFiles) Kind() string { return "embed_memory_files" }

type job = endpoint.OwnerJob[memoryFiles]

// waitingFiles are the files f, in trees t, that wait for vectors in their tree's space.
const waitingFiles = `memory_files f JOIN memory_trees t ON t.org = f.org AND t.key = f.tree_key
	WHERE f.unembedded AND f.deleted_at IS NULL AND t.embedded_space = `

// Queue returns the queue of files with chunks that wait for vectors. Their owners are trees.
func (s *Store) Queue() *endpoint.Queue[memoryFiles] {
	vectors := s.search.VectorTable(`SELECT count(*) FROM `+waitingFiles+`$1`, "org", "tree_key", "file_key", "first_line",
		"last_line")
	vectors.Row, vectors.IndexRows = "chunk", math.MaxInt // a tree is small enough to be searched without an index
	return &endpoint.Queue[memoryFiles]{
		Worker: endpoint.Worker[job]{DB: s.db, Vectors: vectors, Next: s.nextBatch},
		Settle: s.settle,
		Waiting: `
			SELECT f.org, f.tree_key AS owner, max(f.updated_at) AS newest FROM ` + waitingFiles + `@space
			GROUP BY f.org, f.tree_key`,
		Owners: `(SELECT org, key, embedded_space, NULL::timestamptz AS deleted_at FROM memory_trees)`,
		Lock:   "UPDATE", TakeOverRows: 100, TakeOver: []string{
			`UPDATE memory_trees SET embedded_space = @space, embed_error = NULL WHERE org = @org AND key = ANY (@keys)`,
			`UPDATE memory_files SET unembedded = true, refused_chunks = '{}'
			WHERE org = @org AND tree_key = ANY (@keys) AND deleted_at IS NULL`}}
}

// batch is chunks of files of one tree that have no vectors yet.
type batch struct {
	store *Store
	job   job
	space endpoint.Space
	files []unembedded
}

// unembedded is a file with chunks that have no vector.
type unembedded struct {
	Key     int64   `db:"key"`
	Path    string  `db:"path"`
	Content string  `db:"content"`
	SHA256  string  `db:"sha256"`
	Has     []int64 `db:"has"` // ids of chunks that have a vector or were refused

	lacking []chunk // the chunks in the batch
	whole   bool    // no other chunks lack a vector
}

// filesAtOnce is how many files a batch may have. Together they have at most 3 MB.
const filesAtOnce = 32

// nextBatch reads chunks without a vector, from the files that were written last, as many as one request to the
// endpoint may hold.
func (s *Store) nextBatch(ctx context.Context, j job, space endpoint.Space) (endpoint.Batch, error) {
	files, err := db.All[unembedded](ctx, s.db, `
		SELECT f.key, f.path, f.content, f.sha256, f.refused_chunks || ARRAY(
			SELECT v.chunk FROM memory_file_vectors v
			WHERE v.org = $1 AND v.tree_key = $2 AND v.file_key = f.key AND v.space_id = $3) AS has
		FROM `+waitingFiles+`$3 AND f.org = $1 AND f.tree_key = $2
		ORDER BY f.updated_at DESC, f.key DESC
		LIMIT $4`, j.Org, j.Owner, space.ID, filesAtOnce)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	b := &batch{store: s, job: j, space: space}
	for room := s.search.Endpoint.Size(); room > 0 && len(b.files) < len(files); {
		f := files[len(b.files)]
		lacking := slices.DeleteFunc(chunksOf(f.Path, f.Content), func(c chunk) bool { return slices.Contains(f.Has, c.id) })
		f.lacking, f.whole = lacking[:min(len(lacking), room)], len(lacking) <= room
		b.files, room = append(b.files, f), room-len(f.lacking)
	}
	return b, nil
}

// Items implements endpoint.Batch.
func (b *batch) Items() (items []embed.Item) {
	for _, f := range b.files {
		for _, c := range f.lacking {
			items = append(items, embed.Item{ID: c.id, Text: c.text})
		}
	}
	return items
}

// Lock implements endpoint.Batch. It leaves out files that were deleted, got another path or text, or no longer wait.
// ErrNotFound if the tree was deleted or moved to another space.
func (b *batch) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	if _, err := db.One[int64](ctx, tx, `
		SELECT key FROM memory_trees WHERE org = $1 AND key = $2 AND embedded_space = $3 FOR NO KEY UPDATE`,
		b.job.Org, b.job.Owner, b.space.ID); err != nil {
		return nil, err
	}
	keys, paths, sums := b.columns()
	same, err := db.All[int64](ctx, tx, `
		SELECT f.key FROM memory_files f
		JOIN unnest($3::bigint[], $4::text[], $5::text[]) AS was (key, path, sum)
		  ON was.key = f.key AND was.path = f.path AND was.sum = f.sha256
		WHERE f.org = $1 AND f.tree_key = $2 AND f.unembedded AND f.deleted_at IS NULL
		ORDER BY f.key
		FOR NO KEY UPDATE OF f`, b.job.Org, b.job.Owner, keys, paths, sums)
	b.files = slices.DeleteFunc(b.files, func(f unembedded) bool { return !slices.Contains(same, f.Key) })
	locked := map[int64][]any{}
	for _, f := range b.files {
		for _, c := range f.lacking {
			locked[c.id] = []any{b.job.Org, b.job.Owner, f.Key, c.first, c.last}
		}
	}
	return locked, err
}

// columns returns the files' keys, and their paths and checksums as they were read.
func (b *batch) columns() (keys []int64, paths, sums []string) {
	for _, f := range b.files {
		keys, paths, sums = append(keys, f.Key), append(paths, f.Path), append(sums, f.SHA256)
	}
	return keys, paths, sums
}

// Finish implements endpoint.Batch. It stores with a file which of its chunks were refused.
func (b *batch) Finish(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	var rows pgx.Batch
	for _, f := range b.files {
		ids := []int64{}
		for _, r := range refused {
			if slices.ContainsFunc(f.lacking, func(c chunk) bool { return c.id == r.ID }) {
				ids = append(ids, r.ID)
			}
		}
		rows.Queue(`
			UPDATE memory_files SET unembedded = NOT $3, refused_chunks = refused_chunks || $4::bigint[]
			WHERE org = $1 AND key = $2`, b.job.Org, f.Key, f.whole, ids)
	}
	rows.Queue(`UPDATE memory_trees SET embed_error = NULL WHERE org = $1 AND key = $2 AND embed_error IS NOT NULL`,
		b.job.Org, b.job.Owner)
	return tx.SendBatch(ctx, &rows).Close()
}

// Note implements endpoint.Batch.
func (b *batch) Note(ctx context.Context, reason string) error {
	_, err := b.store.db.Exec(ctx, `
		UPDATE memory_trees SET embed_error = $3
		WHERE org = $1 AND key = $2 AND embedded_space = $4 AND embed_error IS DISTINCT FROM $3`,
		b.job.Org, b.job.Owner, reason, b.space.ID)
	return db.Error(err)
}
