package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// admin holds the settings of a command that manages keys or organizations. The command works on the database, whether
// a server runs there or not, or over REST.
type admin struct {
	database
	Addr   string `env:"LOCI_URL" help:"Address or URL of a running server to ask, in place of the database."`
	APIKey secret `name:"api-key" env:"LOCI_API_KEY" help:"API key of the operator or an administrator, for --addr."`
}

// with calls fn with the server at --addr, if that is set, or else with the database. It uses the database of a running
// server if there is one. makes allows creating the private Postgres if none exists.
func (a admin) with(ctx context.Context, s streams, makes bool, fn func(administration) error) error {
	if a.Addr != "" {
		return fn(adminOverREST{remote{Addr: a.Addr, APIKey: a.APIKey}})
	}
	return a.withKeys(ctx, s, makes, func(keys *apikey.Store) error { return fn(adminOfDatabase{keys}) })
}

// withKeys calls fn with the keys in the database. makes is as in with.
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

// adminOfDatabase manages keys and organizations in a database.
type adminOfDatabase struct{ *apikey.Store }

// CreateKey implements administration.
func (a adminOfDatabase) CreateKey(ctx context.Context, n apikey.NewKey) (made madeKey, err error) {
	if n.AgentIDs, err = a.agentIDs(ctx, n); err != nil {
		return made, err
	}
	if n.UserNamed != "" {
		if n.User, err = a.user(ctx, n); err != nil {
			return made, err
		}
	}
	made.Secret, made.Key, err = a.Create(ctx, n)
	return made, err
}

// user returns the user whom a new key names, as an identity of the organization of the key, which must exist.
func (a adminOfDatabase) user(ctx context.Context, n apikey.NewKey) (*apikey.User, error) {
	o, err := a.Organization(ctx, n.Org)
	if err != nil {
		return nil, err
	}
	identities := &agent.Store{DB: a.DB}
	key, err := identities.UserKeyOrNew(ctx, o.Org, n.UserNamed)
	if err != nil {
		return nil, err
	}
	i, err := identities.IdentityByKey(ctx, o.Org, key)
	return &apikey.User{ID: i.ID, Key: key}, err
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
	for _, nameOrID := range n.AgentIDs {
		id, err := agentIDIn(ctx, a.DB, o.Org, nameOrID)
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
	ages retention.Ages, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err != nil {
		return ages, err
	}
	store := retention.Store{DB: a.DB}
	return store.Update(db.WithOrg(ctx, o.Org), o.Org, func(ages *retention.Ages) { changeAges(ages, change) })
}

// changeAges applies a change to ages.
func changeAges(ages *retention.Ages, change map[string]int) {
	for field, target := range map[string]*int{"prompts_days": &ages.Prompts, "prompts_kept": &ages.PromptsKept,
		"long_results_days": &ages.LongResults, "vectors_days": &ages.Vectors, "run_events_hours": &ages.RunEvents,
		"runs_days": &ages.Runs, "replays_days": &ages.Replays} {
		if n, found := change[field]; found {
			*target = n
		}
	}
}

// UpdateQuotas implements administration.
func (a adminOfDatabase) UpdateQuotas(ctx context.Context, idOrName string, change map[string]*int64) (
	limits quota.Limits, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err != nil {
		return limits, err
	}
	store := quota.Store{DB: a.DB}
	return store.Update(db.WithOrg(ctx, o.Org), o.Org, func(limits *quota.Limits) { changeLimits(limits, change) })
}

// changeLimits applies a change to limits.
func changeLimits(limits *quota.Limits, change map[string]*int64) {
	for field, target := range map[string]**int64{db.QuotaAgents: &limits.Agents, db.QuotaStoredBytes: &limits.StoredBytes,
		db.QuotaRequests: &limits.Requests, db.QuotaGatewayRequests: &limits.GatewayRequests,
		db.QuotaGatewayTokens: &limits.GatewayTokens} {
		if n, found := change[field]; found {
			*target = n
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
		usages, err := store.Usages(ctx, only, only == 0, time.Now(), page)
		all = append(all, usages...)
		if err != nil || len(usages) < usagePage {
			return all, err
		}
		page.After = usages[len(usages)-1].OrgID
	}
}
