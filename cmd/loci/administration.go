package main

import (
	"context"

	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

// administration manages keys and organizations. It accepts organizations by name or id.
type administration interface {
	CreateKey(ctx context.Context, n apikey.NewKey) (madeKey, error)
	Keys(ctx context.Context) ([]apikey.Key, error)
	Revoke(ctx context.Context, named string) (id string, err error)

	Organization(ctx context.Context, idOrName string) (apikey.Organization, error)
	Orgs(ctx context.Context) ([]apikey.Organization, error)
	CreateOrg(ctx context.Context, name string) (apikey.Organization, error)
	RenameOrg(ctx context.Context, idOrName, name string) (apikey.Organization, error)
	DeleteOrg(ctx context.Context, idOrName string) (apikey.Organization, error)

	// The keys of change are fields of the REST routes' bodies.
	UpdateRetention(ctx context.Context, idOrName string, change map[string]int) (retention.Ages, error)
	UpdateQuotas(ctx context.Context, idOrName string, change map[string]*int64) (quota.Limits, error)
	Usage(ctx context.Context, idOrName string) ([]quota.OrgUsage, error) // of all organizations if the name is empty
}

// madeKey is a new API key with its secret.
type madeKey struct {
	apikey.Key
	Secret string `json:"key"`
}

// usagePage is how many organizations are read at a time.
const usagePage = 1000
