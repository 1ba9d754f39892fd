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

// Report says what an import read, and what happened to it.
type Report struct {
	DryRun    bool     `json:"dry_run"`
	Migration string   `json:"migration"` // Letta's last migration in the source
	Tables    []*Table `json:"tables"`
	NoHome    []Others `json:"no_home"` // tables without a place in Loci
	// Notes are sentences about what was changed or left out. MoreNotes is the number of further sentences.
	Notes     []string `json:"notes"`
	MoreNotes int      `json:"more_notes"`
}

// Table counts the rows of a table. Rows is the sum of the other numbers.
type Table struct {
	Name     string `json:"table"`
	Rows     int    `json:"rows"`
	Imported int    `json:"imported"`
	Present  int    `json:"present"` // rows that Loci had already
	Deleted  int    `json:"deleted"` // rows that Letta marked as deleted
	LeftOut  int    `json:"left_out"`
	SHA256   string `json:"sha256"` // over all rows in order

	sum hash.Hash
}

// Others counts the rows of a table that has no place in Loci.
type Others struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Why   string `json:"why"`
}

// lastMigration is the last migration of Letta's server before it was retired.
const lastMigration = "1c28e167b74f"

// maxNotes bounds the notes in a report.
const maxNotes = 1000

type builder struct{ Report }

func newReport(database *source, dryRun bool) *builder {
	b := &builder{Report{DryRun: dryRun, Migration: database.head, Notes: []string{}, NoHome: []Others{}}}
	for _, name := range imported {
		b.Tables = append(b.Tables, &Table{Name: name, sum: sha256.New()})
	}
	if database.head != lastMigration {
		b.note("The source is of another version of Letta's server than the last one: its last migration is %s, and not %s. "+
			"Columns and tables that it lacks count as empty.", database.head, lastMigration)
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

// stored counts a row that was stored now, or was already present.
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

// done returns the report with the checksums.
func (b *builder) done() Report {
	for _, t := range b.Tables {
		t.SHA256 = hex.EncodeToString(t.sum.Sum(nil))
	}
	return b.Report
}
