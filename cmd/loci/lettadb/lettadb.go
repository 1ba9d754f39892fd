// Package lettadb imports the database of a Letta server into Loci: organizations, blocks, folders, archives, tools,
// agents with all their messages, and identities, all with their ids.
//
// Each file uses those that are named before it:
// - the source and the report: source.go report.go
// - the import of all organizations: lettadb.go
// - data that has no place in Loci: others.go
// - what agents share: folders.go archives.go blocks.go tools.go identities.go
// - agents and their messages: thread.go history.go agents.go
package lettadb

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Importer imports a Letta server's database. Each block, folder, file, page of passages, tool, agent and identity is
// stored in its own transaction; an agent includes all its messages. What Loci already has is not stored again, so that
// an interrupted import can continue.
type Importer struct {
	Agents *agent.Store
	Has    func(tool string) bool // reports whether Loci has a built-in tool
	// Org is the name or id of the organization that gets everything. If empty, each of Letta's organizations gets its
	// own.
	Org string
	// Provider is the base URL of the embeddings endpoint that made Letta's vectors. If empty, the import uses the URL in
	// Letta's data.
	Provider string
	// Progress is called after each thing that was stored, with the name of its table in Letta. It may be nil.
	Progress func(table string, done int)
}

// Import stores the content of the database at dsn. It reads the database in one snapshot, whatever a Letta server
// writes meanwhile, and never writes to it. With dryRun, it rolls everything back at the end. The error is a
// *NotLettaError if the database is not a Letta server's.
func (i *Importer) Import(ctx context.Context, dsn string, dryRun bool) (report Report, err error) {
	database, err := open(ctx, dsn)
	if err != nil {
		return Report{}, err
	}
	defer database.close(ctx)
	r := &run{Importer: i, from: database, report: newReport(database, dryRun)}
	if !dryRun {
		err = r.all(ctx)
	} else if err = db.Tx(ctx, i.Agents.DB, func(tx pgx.Tx) error {
		return cmp.Or(r.with(tx).all(ctx), errDry)
	}); errors.Is(err, errDry) {
		err = nil
	}
	return r.report.done(), err
}

// errDry ends the transaction of a dry run, which rolls it back.
var errDry = errors.New("the transaction of a dry run is rolled back")

// run is a running import.
type run struct {
	*Importer
	from   *source
	report *builder
	org    db.Org
	source string // id of the organization in Letta's database
}

// with returns a run that executes its statements on Loci's database in tx.
func (r *run) with(tx pgx.Tx) *run {
	copied, importer := *r, *r.Importer
	importer.Agents = r.Agents.With(tx)
	copied.Importer = &importer
	return &copied
}

// all imports every organization, and counts the rows that have no place in Loci.
func (r *run) all(ctx context.Context) error {
	var orgs []organization
	for o, err := range each[organization](ctx, r, "organizations", `SELECT * FROM organizations ORDER BY id`) {
		if err != nil {
			return err
		}
		orgs = append(orgs, o)
	}
	if r.Org != "" && len(orgs) > 1 {
		return db.Invalid("the database has %d organizations, and --org names one that would take all of them: leave it "+
			"out, and each becomes an organization", len(orgs))
	}
	for _, o := range orgs {
		if err := r.organization(ctx, o); err != nil {
			return err
		}
	}
	return r.countOthers(ctx)
}

// organization is an organization in Letta's database.
type organization struct {
	row
	Name string
}

// lettasDefault is the id of the organization with which every Letta server begins. It becomes Loci's first
// organization.
const lettasDefault = "org-00000000-0000-4000-8000-000000000000"

func (r *run) organization(ctx context.Context, o organization) error {
	keys := &apikey.Store{DB: r.Agents.DB}
	target, created, err := apikey.Organization{}, false, error(nil)
	switch {
	case r.Org != "":
		target, err = keys.Organization(ctx, r.Org)
	case o.ID == lettasDefault:
		target, err = keys.Organization(ctx, apikey.DefaultOrg)
	default:
		name := clipped(plainName(o.Name, "Organization"), 190)
		target, created, err = keys.RestoreOrg(ctx, o.ID, name, o.created())
	}
	if err != nil {
		return err
	}
	r.report.stored("organizations", created)
	orgRun := *r
	orgRun.org, orgRun.source = target.Org, o.ID
	for _, step := range []func(context.Context) error{orgRun.blocks, orgRun.folders, orgRun.archives, orgRun.tools,
		orgRun.agents, orgRun.identities} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// item stores a thing in a transaction. If a rule forbids the thing, nothing of it is stored, and the report says why.
func (r *run) item(ctx context.Context, table, id string, store func(txRun *run) error) error {
	err := db.Tx(ctx, r.Agents.DB, func(tx pgx.Tx) error { return store(r.with(tx)) })
	switch {
	case err == nil:
		r.report.stored(table, true)
		if r.Progress != nil {
			r.Progress(table, r.report.table(table).Imported)
		}
	case errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound):
		r.report.leftOut(table, "%s %s: left out. %v", table, id, err)
	default:
		return err
	}
	return nil
}

// absent reports whether a thing does not exist, by the error of looking it up.
func absent(err error) (bool, error) {
	if errors.Is(err, db.ErrNotFound) {
		return true, nil
	}
	return false, err
}
