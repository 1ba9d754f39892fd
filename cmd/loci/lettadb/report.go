package lettadb

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// Report says what an import read and what became of it.
type Report struct {
	DryRun    bool     `json:"dry_run"`
	Migration string   `json:"migration"` // the last of Letta's that the source has
	Tables    []*Table `json:"tables"`
	NoHome    []Others `json:"no_home"` // tables that Loci has nothing for
	// Notes says what was changed or left out, a sentence each, and MoreNotes how many sentences are left out.
	Notes     []string `json:"notes"`
	MoreNotes int      `json:"more_notes"`
}

// Table is what an import read of a table. Rows is the sum of the others.
type Table struct {
	Name     string `json:"table"`
	Rows     int    `json:"rows"`
	Imported int    `json:"imported"`
	Present  int    `json:"present"` // that Loci had already
	Deleted  int    `json:"deleted"` // that Letta marked as deleted
	LeftOut  int    `json:"left_out"`
	SHA256   string `json:"sha256"` // of all rows, in their order

	sum hash.Hash
}

// Others are the rows of a table that Loci has nothing for.
type Others struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Why   string `json:"why"`
}

// lastMigration is the last migration that Letta's server had when it was retired.
const lastMigration = "1c28e167b74f"

// maxNotes bounds the notes of a report.
const maxNotes = 1000

// builder builds a report.
type builder struct{ Report }

func newReport(from *source, dryRun bool) *builder {
	b := &builder{Report{DryRun: dryRun, Migration: from.head, Notes: []string{}, NoHome: []Others{}}}
	for _, name := range imported {
		b.Tables = append(b.Tables, &Table{Name: name, sum: sha256.New()})
	}
	if from.head != lastMigration {
		b.note("The source is of another version of Letta's server than the last one: its last migration is %s, and not %s. "+
			"Columns and tables that it lacks count as empty.", from.head, lastMigration)
	}
	return b
}

// imported are the tables that are imported.
var imported = []string{"organizations", "block", "block_history", "sources", "files", "archives", "archival_passages",
	"tools", "agents", "agents_tags", "blocks_agents", "sources_agents", "archives_agents", "tools_agents",
	"conversations", "messages", "files_agents", "identities", "identities_agents", "identities_blocks"}

func (b *builder) table(name string) *Table {
	return b.Tables[slices.IndexFunc(b.Tables, func(t *Table) bool { return t.Name == name })]
}

// read counts a row that was read.
func (b *builder) read(table string, raw json.RawMessage) {
	t := b.table(table)
	t.Rows++
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(raw)))
	t.sum.Write(size[:])
	t.sum.Write(raw)
}

// stored counts a row that was stored, or was there already.
func (b *builder) stored(table string, now bool) {
	if now {
		b.table(table).Imported++
	} else {
		b.table(table).Present++
	}
}

// leftOut counts a row that was not stored, and notes why.
func (b *builder) leftOut(table, format string, args ...any) {
	b.table(table).LeftOut++
	b.note(format, args...)
}

func (b *builder) note(format string, args ...any) {
	text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	if len(b.Notes) == maxNotes {
		b.MoreNotes++
	} else if !slices.Contains(b.Notes, text) {
		b.Notes = append(b.Notes, text)
	}
}

// done returns the report with its checksums.
func (b *builder) done() Report {
	for _, t := range b.Tables {
		t.SHA256 = hex.EncodeToString(t.sum.Sum(nil))
	}
	return b.Report
}
