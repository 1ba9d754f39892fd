package erase

import (
	"context"
	"slices"
	"strings"
)

// What an erasure does not reach.
const (
	logsRemain = "Lines that the server has logged already are the operator's: an erasure does not reach them. Delete " +
		"them where the log is kept."
	copiesRemain = "Backups, exports and replicas that were made before have the text until they are deleted."
	walRemains   = "Postgres' write-ahead log has the text until its segments are recycled: after the next checkpoints, " +
		"or as long as an archive or a replication slot keeps them."

	allFilesRemain = "The free space of the files of Postgres' tables has the text until Postgres writes other rows " +
		"there, and their samples of columns in pg_statistic (statistics) until Postgres analyzes tables with rows: "
	allFilesRemedy = " To end that now, run as a superuser, while no server is at work: DELETE FROM pg_statistic; " +
		"VACUUM (FULL, ANALYZE); VACUUM FULL pg_statistic. With LOCI_DATABASE_OWNER_URL, erasures do this for small tables."
	noOwner = "the server knows no role that owns them, and did neither."
)

// remains rewrites the tables if the server can connect as their owner. It returns sentences that say where the text
// still is, and until when.
func (w *sweep) remains(ctx context.Context) []string {
	remains := []string{logsRemain, copiesRemain, walRemains}
	if w.e.UserID != nil {
		remains = append([]string{nobodysRemain}, remains...)
	}
	if w.Owner == nil {
		return append(remains, w.allFiles(noOwner))
	}
	r, err := newRewriter(ctx, w.Owner)
	if err != nil {
		return append(remains, w.allFiles("the server did not reach the database as the role that owns them."))
	}
	defer r.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is not used again
	k, err := r.rewriteAll(ctx)
	if err != nil {
		return append(remains, w.allFiles("the rewriting of the tables was cut short."))
	}
	return append(remains, k.sentences()...)
}

// madeOf maps a table in the report to the tables that hold the same texts, or something made from them.
var madeOf = map[string][]string{
	"messages": {"blobs", "clips", "compactions", "erased_messages", "message_pieces", "message_vectors", "prompt_parts",
		"prompts", "word_postings"},
	"files": {"chunk_vectors", "chunks", "file_originals", "file_segments", "gram_blocks", "gram_units",
		"read_pages", "word_postings"},
	"passages":     {"passage_values", "passage_vectors", "word_postings"},
	"memory_files": {"memory_file_vectors"},
	"blobs":        {"clips"},
	"prompt_parts": {"prompts"},
}

// allFiles says that no table was rewritten, why, and which tables held the text.
func (w *sweep) allFiles(why string) string {
	tables := []string{"erasures"}
	for found := range w.report.Found {
		tables = append(append(tables, found), madeOf[found]...)
	}
	slices.Sort(tables)
	return allFilesRemain + why + " They are " + strings.Join(slices.Compact(tables), ", ") +
		", and those that lost rows with the text before." + allFilesRemedy
}

// sentences says where the text still is, and what removes it there.
func (k kept) sentences() (list []string) {
	if len(k.files) > 0 {
		list = append(list, "The free space of the files of "+strings.Join(k.files, ", ")+" may have the text until "+
			"Postgres writes other rows there: they are larger than 64 MiB, or other sessions use them. To end that now, run "+
			"VACUUM FULL on them as their owner (on pg_statistic: as the owner of the database) while no server is at work.")
	}
	if len(k.samples) > 0 {
		var names []string
		for _, name := range k.samples {
			names = append(names, "'"+name+"'::regclass")
		}
		list = append(list, "Postgres' samples of the columns (statistics) of "+strings.Join(k.samples, ", ")+" may have "+
			"the text: Postgres keeps those of an empty table until it has rows and is analyzed. To end that now, run as a "+
			"superuser: DELETE FROM pg_statistic WHERE starelid IN ("+strings.Join(names, ", ")+"); VACUUM FULL pg_statistic.")
	}
	return list
}
