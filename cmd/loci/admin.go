package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// admin holds the settings of a command that manages keys or organizations: in the database, whether a server runs on
// it or not, or over REST.
type admin struct {
	database
	Addr   string `env:"LOCI_URL" help:"Address or URL of a running server to ask, in place of the database."`
	APIKey secret `name:"api-key" env:"LOCI_API_KEY" help:"API key of the operator or an administrator, for --addr."`
}

// with calls fn with the server that the settings name, or else with the database: that of a running server if there is
// one. makes says to make the private Postgres where none exists yet.
func (a admin) with(ctx context.Context, s streams, makes bool, fn func(administration) error) error {
	if a.Addr != "" {
		return fn(adminOverREST{remote{Addr: a.Addr, APIKey: a.APIKey}})
	}
	return a.withKeys(ctx, s, makes, func(keys *apikey.Store) error { return fn(adminOfDatabase{keys}) })
}

// withKeys calls fn with the keys of the database.
func (d database) withKeys(ctx context.Context, s streams, makes bool, fn func(*apikey.Store) error) (err error) {
	log, err := logger(s, "warn", "text")
	if err != nil {
		return err
	}
	exists, err := d.exists()
	if err != nil {
		return err
	}
	var pg opened
	if makes && !exists {
		pg, err = d.open(ctx, log)
	} else {
		pg, err = d.runningOrOpen(ctx, log)
	}
	if err != nil {
		return err
	}
	if makes && !exists {
		home, _ := d.home() // exists has found it
		fmt.Fprintf(s.err, "loci: there was no database in %s, and one was made\n", home)
	}
	defer func() { err = errors.Join(err, pg.close()) }()
	pool, err := db.Open(ctx, pg.urls)
	if err != nil {
		return err
	}
	defer pool.Close()
	return fn(&apikey.Store{DB: pool})
}

// adminOfDatabase manages the keys and the organizations of a database.
type adminOfDatabase struct{ *apikey.Store }

// CreateKey implements administration.
func (a adminOfDatabase) CreateKey(ctx context.Context, n apikey.NewKey) (made madeKey, err error) {
	if n.AgentIDs, err = a.agentIDs(ctx, n); err != nil {
		return made, err
	}
	made.Secret, made.Key, err = a.Create(ctx, n)
	return made, err
}

// agentIDs returns the IDs of the agents that a new key names.
func (a adminOfDatabase) agentIDs(ctx context.Context, n apikey.NewKey) (ids []string, err error) {
	var o apikey.Organization
	if slices.ContainsFunc(n.AgentIDs, isName) {
		if o, err = a.Organization(ctx, n.Org); errors.Is(err, db.ErrNotFound) {
			return nil, db.NotFound("there is no organization %s, and so no agent of it", n.Org)
		} else if err != nil {
			return nil, err
		}
	}
	for _, named := range n.AgentIDs {
		id, err := agentIDIn(ctx, a.DB, o.Org, named)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Keys implements administration.
func (a adminOfDatabase) Keys(ctx context.Context) ([]apikey.Key, error) { return a.List(ctx) }

// Orgs implements administration.
func (a adminOfDatabase) Orgs(ctx context.Context) ([]apikey.Organization, error) {
	return a.AllOrgs(ctx)
}

// UpdateRetention implements administration.
func (a adminOfDatabase) UpdateRetention(ctx context.Context, idOrName string, change map[string]int) (
	now retention.Ages, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err != nil {
		return now, err
	}
	store := retention.Store{DB: a.DB}
	return store.Update(db.WithOrg(ctx, o.Org), o.Org, func(now *retention.Ages) { changeAges(now, change) })
}

// changeAges sets the fields of a change.
func changeAges(now *retention.Ages, change map[string]int) {
	for field, to := range map[string]*int{"prompts_days": &now.Prompts, "prompts_kept": &now.PromptsKept,
		"long_results_days": &now.LongResults, "vectors_days": &now.Vectors, "run_events_hours": &now.RunEvents,
		"runs_days": &now.Runs, "replays_days": &now.Replays} {
		if n, given := change[field]; given {
			*to = n
		}
	}
}

// UpdateQuotas implements administration.
func (a adminOfDatabase) UpdateQuotas(ctx context.Context, idOrName string, change map[string]*int64) (
	now quota.Limits, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err != nil {
		return now, err
	}
	store := quota.Store{DB: a.DB}
	return store.Update(db.WithOrg(ctx, o.Org), o.Org, func(now *quota.Limits) { changeLimits(now, change) })
}

// changeLimits sets the fields of a change.
func changeLimits(now *quota.Limits, change map[string]*int64) {
	for field, to := range map[string]**int64{db.QuotaAgents: &now.Agents, db.QuotaStoredBytes: &now.StoredBytes,
		db.QuotaRequests: &now.Requests} {
		if n, given := change[field]; given {
			*to = n
		}
	}
}

// Usage implements administration.
func (a adminOfDatabase) Usage(ctx context.Context, idOrName string) (all []quota.OrgUsage, err error) {
	var only db.Org
	if idOrName != "" {
		o, err := a.Organization(ctx, idOrName)
		if err != nil {
			return nil, err
		}
		only = o.Org
	}
	store, page := quota.Store{DB: a.DB}, db.Page{Ascending: true, Limit: usagePage}
	for {
		some, err := store.Usages(ctx, only, only == 0, time.Now(), page)
		all = append(all, some...)
		if err != nil || len(some) < usagePage {
			return all, err
		}
		page.After = some[len(some)-1].OrgID
	}
}
