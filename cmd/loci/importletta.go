package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/cmd/loci/lettadb"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// importLettaCmd imports the database of a Letta server, whether a server runs on Loci's database or not.
type importLettaCmd struct {
	database
	DSN      secret `name:"dsn" env:"LETTA_PG_URI" required:"" help:"Letta's Postgres, which is only read: postgres://…"`
	DryRun   bool   `help:"Import everything, print the report, and take it all back."`
	Org      string `help:"Organization that takes all (default: one for each of Letta's)."`
	Provider string `placeholder:"URL" help:"LOCI_EMBEDDING_BASE_URL of servers, if it is another one than Letta's."`
	JSON     bool   `name:"json" help:"Print the report as JSON."`
}

// maxTextBytes bounds the text of a file in Letta's database, which is a single value of a column.
const maxTextBytes = 1 << 30

func (c importLettaCmd) Run(ctx context.Context, s streams) (err error) {
	if _, err := pgx.ParseConfig(sqlalchemy.Replace(string(c.DSN))); err != nil {
		return settingError{fmt.Errorf("--dsn (LETTA_PG_URI) is no URL of Postgres: %w", err)}
	}
	log, err := logger(s, "warn", "text")
	if err != nil {
		return err
	}
	pg, err := c.runningOrOpen(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	pool, err := db.Open(ctx, pg.urls)
	if err != nil {
		return err
	}
	defer pool.Close()
	agents, tools, err := storesOf(pool)
	if err != nil {
		return err
	}
	progress := newProgressLine(s.err)
	importer := &lettadb.Importer{Agents: agents, Has: tools.Has, Org: c.Org, Provider: c.Provider,
		Progress: func(table string, done int) { progress.show(fmt.Sprintf("%s: %d", table, done)) }}
	report, err := importer.Import(ctx, sqlalchemy.Replace(string(c.DSN)), c.DryRun)
	progress.end()
	if err != nil && report.Tables != nil {
		err = fmt.Errorf("%w. What was imported stays: run the command again, and it goes on from there", err)
	}
	if err != nil {
		return err
	}
	return c.print(s, report)
}

// sqlalchemy removes the name of a Python driver from a URL; Letta's settings may contain one.
var sqlalchemy = strings.NewReplacer("postgresql+pg8000://", "postgres://", "postgresql+asyncpg://", "postgres://")

// storesOf returns stores for a command that writes to the database without a server.
func storesOf(d db.DB) (*agent.Store, *tool.Set, error) {
	store, err := files.New(d, files.Options{MaxUploadBytes: maxTextBytes, Limits: agent.LimitsOf,
		PromptTokens: tokens.Estimate})
	if err != nil {
		return nil, nil, err
	}
	messages := recall.New(d, recall.Options{})
	memoryFiles := memoryfile.New(d, memoryfile.Options{Redactor: messages.Redactor})
	blocks, passages := &block.Store{DB: d}, archival.New(d, archival.Options{})
	record := &working.Store{DB: d, Recall: messages, Files: store}
	tools := tool.New(tool.Memories{Files: store, Recall: messages, Blocks: blocks, Archival: passages, Working: record,
		MemoryFiles: memoryFiles})
	return &agent.Store{DB: d, Files: store, Recall: messages, Blocks: blocks, Archival: passages, Working: record,
		MemoryFiles: memoryFiles, Tokens: tokens.New(), Compaction: compaction.New(d, messages),
		Tools: tools.Definitions}, tools, nil
}

func (c importLettaCmd) print(s streams, report lettadb.Report) error {
	if c.JSON {
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	if report.DryRun {
		fmt.Fprintln(s.out, "This was a dry run: nothing is stored.")
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tROWS\tIMPORTED\tPRESENT\tDELETED\tLEFT OUT\tSHA-256")
	for _, t := range report.Tables {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.16s\n", t.Name, t.Rows, t.Imported, t.Present, t.Deleted, t.LeftOut,
			t.SHA256)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range report.NoHome {
		fmt.Fprintf(s.out, "not imported: %s, %d rows. %s\n", o.Table, o.Rows, o.Why)
	}
	for _, n := range report.Notes {
		fmt.Fprintln(s.out, "note:", n)
	}
	if report.MoreNotes > 0 {
		fmt.Fprintf(s.out, "note: there are %d more notes\n", report.MoreNotes)
	}
	return nil
}
