package rest

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Keys finds the key of a request. The functions return db.ErrNotFound if they find nothing.
type Keys struct {
	// Lookup returns the key with a secret, or apikey.ErrExpired.
	Lookup  func(ctx context.Context, secret string) (apikey.Key, error)
	OpenOrg func(ctx context.Context) (db.Org, error) // of requests without a key; nil refuses them

	// AgentOf returns the agent to which a conversation or a run belongs, whose id a parameter of a path is.
	AgentOf func(ctx context.Context, org db.Org, param, id string) (agentID string, err error)
	Used    func(ctx context.Context, keyID string) error // stores that a key was used; may be nil
	Limits  apikey.Limits                                 // of keys without limits of their own

	// Request counts a request of a key that may send it. A *db.QuotaError if its organization has sent all that it may,
	// unless the key is an operator's. It may be nil.
	Request func(ctx context.Context, key apikey.Key) error
}
