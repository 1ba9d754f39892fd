// Package lettadb reads the database of a Letta server and stores what is in it as Loci's: organizations, blocks,
// folders, archives, tools, agents with all their messages, and identities, under their ids.
//
// Each file uses those that are named before it:
//   - what is read, and what is reported of it: source.go report.go
//   - the import of all organizations: lettadb.go
//   - what Loci has nothing for: others.go
//   - what agents share: folders.go archives.go blocks.go tools.go identities.go
//   - agents and their messages: thread.go history.go agents.go
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

// Importer imports from a Letta server's database. Each block, folder, file, page of passages, tool, agent and identity
// is stored in a transaction of its own, an agent with all its messages. What is there already is not stored again, so
// that an import which was interrupted goes on where it stopped.
type Importer struct {
	Agents *agent.Store
	Has    func(tool string) bool // whether Loci has a built-in tool
	// Org is the name or id of the organization that takes all; empty for one for each of Letta's.
	Org string
	// Provider is the base URL of the embeddings endpoint whose vectors Letta's are; empty is what Letta has itself.
	Provider string
	// Progress is called after each thing that was stored, with the table of Letta's that it is from; nil is not called.
	Progress func(table string, done int)
}

// Import stores what the database of dsn has. It reads one state of it, whatever a Letta server writes meanwhile, and
// writes nothing to it. With dryRun it takes everything back at the end. The error is a *NotLettaError if the database
// is no Letta server's.
func (i *Importer) Import(ctx context.Context, dsn string, dryRun bool) (report Report, err error) {
	from, err := open(ctx, dsn)
	if err != nil {
		return Report{}, err
	}
	defer from.close(ctx)
	r := &run{Importer: i, from: from, report: newReport(from, dryRun)}
	if !dryRun {
		err = r.all(ctx)
	} else if err = db.Tx(ctx, i.Agents.DB, func(tx pgx.Tx) error {
		return cmp.Or(r.with(tx).all(ctx), errDry)
	}); errors.Is(err, errDry) {
		err = nil
	}
	return r.report.done(), err
}

// errDry ends the transaction of a dry run, which is rolled back.
var errDry = errors.New("the transaction of a dry run is rolled back")

// run is an import under way.
type run struct {
	*Importer
	from   *source
	report *builder
	org    db.Org
	source string // the id of the organization at the source
}

// with returns the run with all statements at the target in tx.
func (r *run) with(tx pgx.Tx) *run {
	in, importer := *r, *r.Importer
	importer.Agents = r.Agents.With(tx)
	in.Importer = &importer
	return &in
}

// all imports every organization, and counts what has no home.
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

// organization is an organization at the source.
type organization struct {
	row
	Name string
}

// lettasDefault is the id of the organization that each Letta server begins with, which becomes Loci's first.
const lettasDefault = "org-00000000-0000-4000-8000-000000000000"

func (r *run) organization(ctx context.Context, o organization) error {
	keys := &apikey.Store{DB: r.Agents.DB}
	taken, created, err := apikey.Organization{}, false, error(nil)
	switch {
	case r.Org != "":
		taken, err = keys.Organization(ctx, r.Org)
	case o.ID == lettasDefault:
		taken, err = keys.Organization(ctx, apikey.DefaultOrg)
	default:
		name := clipped(plainName(o.Name, "Organization"), 190)
		taken, created, err = keys.RestoreOrg(ctx, o.ID, name, o.created())
	}
	if err != nil {
		return err
	}
	r.report.stored("organizations", created)
	in := *r
	in.org, in.source = taken.Org, o.ID
	for _, step := range []func(context.Context) error{in.blocks, in.folders, in.archives, in.tools, in.agents,
		in.identities} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// item stores a thing in a transaction. If a rule forbids it, nothing of it is stored, and the report says why.
func (r *run) item(ctx context.Context, table, id string, store func(in *run) error) error {
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

// absent reports whether a thing is not there, by the error of looking for it.
func absent(err error) (bool, error) {
	if errors.Is(err, db.ErrNotFound) {
		return true, nil
	}
	return false, err
}
