package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// adminOverREST manages keys and organizations of a running server, with the rights of the command's key.
type adminOverREST struct{ remote }

const (
	keysPath      = "/v1/admin/keys"
	orgsPath      = "/v1/admin/orgs"
	quotasPath    = "/v1/admin/quotas"
	retentionPath = "/v1/admin/retention"
	usagePath     = "/v1/admin/usage"
)

func (a adminOverREST) in(path string, o apikey.Organization) string {
	return path + "?" + url.Values{"org_id": {o.ID}}.Encode()
}

// CreateKey implements administration. If no organization is named, the key belongs to the caller's.
func (a adminOverREST) CreateKey(ctx context.Context, n apikey.NewKey) (created madeKey, err error) {
	body := map[string]any{"name": n.Name, "scopes": n.Scopes, "operator": n.Operator}
	agents, err := a.agentIDs(ctx, n)
	if err != nil {
		return created, err
	}
	if len(agents) > 0 {
		body["agent_ids"] = agents
	}
	if n.Org != "" {
		o, err := a.orCreated(ctx, n.Org)
		if err != nil {
			return created, err
		}
		body["org_id"] = o.ID
	}
	if n.UserNamed != "" {
		body["user_id"] = n.UserNamed
	}
	if n.ExpiresAt != nil {
		body["expires_at"] = n.ExpiresAt.UTC().Format(time.RFC3339)
	}
	for field, limit := range map[string]*int{"requests_per_minute": n.RequestsPerMinute,
		"requests_at_once": n.RequestsAtOnce} {
		if limit != nil {
			body[field] = *limit
		}
	}
	if n.GatewayMode != "" {
		body["gateway_mode"] = n.GatewayMode
	}
	err = a.send(ctx, http.MethodPost, keysPath, body, &created)
	return created, err
}

// agentIDs returns the IDs of the agents that a new key names. Only agents of the caller's organization can be given by
// name.
func (a adminOverREST) agentIDs(ctx context.Context, n apikey.NewKey) (ids []string, err error) {
	if n.Org != "" && slices.ContainsFunc(n.AgentIDs, isName) {
		var caller server.Caller
		if err := a.get(ctx, "/v1/caller", &caller); err != nil {
			return nil, err
		}
		o, err := a.Organization(ctx, n.Org)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return nil, err
		}
		if o.ID != caller.OrgID {
			return nil, fmt.Errorf("agents of the organization %s cannot be found by their names with a key of %s: give "+
				"their IDs", n.Org, caller.OrgName)
		}
	}
	for _, nameOrID := range n.AgentIDs {
		id, err := a.agentID(ctx, nameOrID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// orCreated returns an organization. If there is none with the name, it creates one.
func (a adminOverREST) orCreated(ctx context.Context, idOrName string) (apikey.Organization, error) {
	o, err := a.Organization(ctx, idOrName)
	if errors.Is(err, db.ErrNotFound) {
		return a.CreateOrg(ctx, idOrName)
	}
	return o, err
}

// Keys implements administration.
func (a adminOverREST) Keys(ctx context.Context) (keys []apikey.Key, err error) {
	keys = []apikey.Key{}
	all, err := listAll[apikey.Key](ctx, a.remote, keysPath, url.Values{})
	for _, k := range all {
		keys = append(keys, k.shown)
	}
	return keys, err
}

// Revoke implements administration. named may be a secret. The server gets it only as the key of a request, never as a
// parameter.
func (a adminOverREST) Revoke(ctx context.Context, named string) (id string, err error) {
	keys, err := a.Keys(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, k := range keys {
		if named == k.ID || named == k.Prefix {
			ids = append(ids, k.ID)
		}
	}
	if len(ids) == 0 && !strings.HasPrefix(named, "key-") {
		var caller server.Caller
		if err := (remote{a.Addr, secret(named)}).get(ctx, "/v1/caller", &caller); err == nil && caller.KeyID != "" {
			ids = append(ids, caller.KeyID)
		}
	}
	switch len(ids) {
	case 0:
		return "", db.NotFound("there is no such API key, or it has expired: give its ID, as 'loci keys list' shows it")
	case 1:
		return ids[0], a.send(ctx, http.MethodDelete, keysPath+"/"+url.PathEscape(ids[0]), nil, nil)
	}
	return "", db.Conflict("%d API keys begin with %s; revoke one by its id", len(ids), named)
}

// Organization implements administration.
func (a adminOverREST) Organization(ctx context.Context, idOrName string) (apikey.Organization, error) {
	all, err := a.Orgs(ctx)
	name := strings.Join(strings.Fields(idOrName), " ")
	for _, matches := range []func(apikey.Organization) bool{
		func(o apikey.Organization) bool { return o.ID == idOrName },
		func(o apikey.Organization) bool { return o.Name == name },
	} {
		for _, o := range all {
			if matches(o) {
				return o, nil
			}
		}
	}
	if err == nil {
		err = db.NotFound("Organization with ID %s not found", idOrName)
	}
	return apikey.Organization{}, err
}

// Orgs implements administration.
func (a adminOverREST) Orgs(ctx context.Context) (orgs []apikey.Organization, err error) {
	orgs = []apikey.Organization{}
	all, err := listAll[apikey.Organization](ctx, a.remote, orgsPath, url.Values{})
	for _, o := range all {
		orgs = append(orgs, o.shown)
	}
	return orgs, err
}

// CreateOrg implements administration.
func (a adminOverREST) CreateOrg(ctx context.Context, name string) (o apikey.Organization, err error) {
	return o, a.send(ctx, http.MethodPost, orgsPath, map[string]string{"name": name}, &o)
}

// RenameOrg implements administration.
func (a adminOverREST) RenameOrg(ctx context.Context, idOrName, name string) (apikey.Organization, error) {
	o, err := a.Organization(ctx, idOrName)
	if err == nil {
		err = a.send(ctx, http.MethodPatch, a.in(orgsPath, o), map[string]string{"name": name}, &o)
	}
	return o, err
}

// DeleteOrg implements administration.
func (a adminOverREST) DeleteOrg(ctx context.Context, idOrName string) (apikey.Organization, error) {
	o, err := a.Organization(ctx, idOrName)
	if err == nil {
		err = a.send(ctx, http.MethodDelete, a.in(orgsPath, o), nil, nil)
	}
	return o, err
}

// UpdateRetention implements administration.
func (a adminOverREST) UpdateRetention(ctx context.Context, idOrName string, change map[string]int) (
	ages retention.Ages, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err == nil {
		err = a.send(ctx, http.MethodPatch, a.in(retentionPath, o), change, &ages)
	}
	return ages, err
}

// UpdateQuotas implements administration. An empty change only reads the quotas, which administrators may do.
func (a adminOverREST) UpdateQuotas(ctx context.Context, idOrName string, change map[string]*int64) (
	limits quota.Limits, err error) {
	o, err := a.Organization(ctx, idOrName)
	if err != nil {
		return limits, err
	}
	if len(change) == 0 {
		return limits, a.get(ctx, a.in(quotasPath, o), &limits)
	}
	return limits, a.send(ctx, http.MethodPatch, a.in(quotasPath, o), change, &limits)
}

// Usage implements administration.
func (a adminOverREST) Usage(ctx context.Context, idOrName string) (all []quota.OrgUsage, err error) {
	all = []quota.OrgUsage{}
	query := url.Values{"limit": {fmt.Sprint(usagePage)}}
	if idOrName != "" {
		o, err := a.Organization(ctx, idOrName)
		if err != nil {
			return nil, err
		}
		query.Set("org_id", o.ID)
	}
	for {
		var usages []quota.OrgUsage
		if err := a.get(ctx, usagePath+"?"+query.Encode(), &usages); err != nil {
			return nil, err
		}
		if all = append(all, usages...); len(usages) < usagePage {
			return all, nil
		}
		query.Set("after", usages[len(usages)-1].OrgID)
	}
}
