package erase

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ErasedRow is a row with an occurrence outside of messages, files, passages and stored prompts.
type ErasedRow struct {
	Where       string `json:"where" doc:"Table and column."`
	Of          string `json:"of" doc:"The row, such as which consumer of which agent; empty for a job."`
	Occurrences int    `json:"occurrences" doc:"How often it was there."`
	Left        bool   `json:"left" doc:"It could not be changed."`
}

// maxPlaces is how many places a report names.
const maxPlaces = 200

// place names a row with occurrences in a column.
func (w *sweep) place(t table, h hit, column, n int, left bool) {
	p := ErasedRow{Where: t.name + "." + t.columns[column].Name, Occurrences: n, Left: left}
	keys := make([]string, len(h.keys))
	for i, key := range h.keys {
		keys[i], _ = w.matcherOf(t.name).erase(key)
	}
	switch {
	case t.name == consumers && len(keys) == 2:
		p.Of = fmt.Sprintf("consumer %s of agent %s", keys[1], keys[0])
	case t.name != "river_job": // its number counts the jobs of all organizations
		p.Of = strings.Join(keys, " ")
	}
	if len(w.report.Places) < maxPlaces && !slices.Contains(w.report.Places, p) {
		w.report.Places = append(w.report.Places, p)
	}
}

// consumers is the table of the named readers of events, whose names are keys that an erasure may change.
const consumers = "event_consumers"

// What an erasure does not reach.
const (
	logsRemain = "Lines that the server has logged already are the operator's: an erasure does not reach them. Delete " +
		"them where the log is kept."
	copiesRemain = "Backups, exports and replicas that were made before have the text until they are deleted."
	walRemains   = "Postgres' write-ahead log has the text until its segments are recycled: after the next checkpoints, " +
		"or as long as an archive or a replication slot keeps them."
)

// keptFiles are the tables beside those of a report's counts that an erasure changes.
var keptFiles = map[string][]string{
	"messages":     {"messages", "blobs", "clips", "compactions", "prompts", "prompt_parts", "erased_messages"},
	"files":        {"files", "file_originals", "file_segments", "chunks"},
	"passages":     {"passages"},
	"blobs":        {"blobs", "clips"},
	"prompt_parts": {"prompts", "prompt_parts"},
}

// Bounds of the rewriting of tables after an erasure.
const (
	rewriteBytes = 64 << 20         // a larger table, with its indexes, is not written anew
	vacuumTime   = 30 * time.Second // for one table
)

// vacuum removes what Postgres' files keep of the rows that an erasure has changed, and of its samples of columns. It
// writes small tables anew, unless another session is at work on them; in the files of others the text stays within
// free space. It returns what remains where, and until when.
func (w *sweep) vacuum(ctx context.Context) []string {
	remains := []string{logsRemain, copiesRemain, walRemains}
	var tables []string
	for found := range w.report.Found {
		tables = append(tables, found)
		tables = append(tables, keptFiles[found]...)
	}
	slices.Sort(tables)
	var kept []string
	for _, name := range slices.Compact(tables) {
		if !w.rewritten(ctx, name) {
			kept = append(kept, name)
		}
	}
	if len(kept) > 0 {
		remains = append(remains, "The free space of the files of "+strings.Join(kept, ", ")+" has the text until Postgres "+
			"writes other rows there. To end that now, run VACUUM FULL on these tables while no server is at work.")
	}
	return remains
}

// rewritten vacuums a table, and reports whether it was written anew.
func (w *sweep) rewritten(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, vacuumTime)
	defer cancel()
	type file struct {
		Node  *uint32 `db:"node"`
		Bytes *int64  `db:"bytes"`
	}
	look := func() (file, error) {
		return db.One[file](ctx, w.DB, `
			SELECT pg_relation_filenode(to_regclass($1)) AS node, pg_total_relation_size(to_regclass($1)) AS bytes`,
			pgx.Identifier{name}.Sanitize())
	}
	before, err := look()
	if err != nil || before.Node == nil {
		return false
	}
	how := "ANALYZE"
	if *before.Bytes <= rewriteBytes {
		how = "FULL, ANALYZE, SKIP_LOCKED"
	}
	if err := db.Exec(ctx, w.DB, "VACUUM ("+how+") "+pgx.Identifier{name}.Sanitize()); err != nil {
		return false
	}
	after, err := look()
	return err == nil && after.Node != nil && *after.Node != *before.Node
}
