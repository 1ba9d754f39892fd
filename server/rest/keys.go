package rest

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Keys finds the key of a request. Its functions return db.ErrNotFound if they find nothing.
type Keys struct {
	// Lookup returns the key that has a secret. apikey.ErrExpired if the key has expired.
	Lookup  func(ctx context.Context, secret string) (apikey.Key, error)
	OpenOrg func(ctx context.Context) (db.Org, error) // for requests without a key; nil refuses them

	// AgentOf returns the agent of a conversation or a run. param is the path's parameter, and id its value.
	AgentOf func(ctx context.Context, org db.Org, param, id string) (agentID string, err error)
	// User returns the identity that a request names in the header X-Loci-User, by its id or identifier_key. It may make
	// one if the key may write.
	User func(ctx context.Context, key apikey.Key, named string) (apikey.User, error)
	// CheckUser returns an error if a request for the user of a key may not work with an agent, also because its path
	// leads to what is not the user's.
	CheckUser func(ctx context.Context, key apikey.Key, r UserRequest) error
	Used      func(ctx context.Context, keyID string) error // stores that a key was used; may be nil
	Limits    apikey.Limits                                 // limits of keys without limits of their own

	// Request counts a request after its key was authorized. A *db.QuotaError if the organization has sent all requests
	// that it may; the operator's keys never get that error. Request may be nil.
	Request func(ctx context.Context, key apikey.Key) error
}

// UserRequest describes a request that works for one user.
type UserRequest struct {
	AgentID   string
	Param, ID string // the parameter of the path that leads to the agent, and its value; empty if there is none
	Acts      bool   // it works as the agent
	Converses bool   // it works in a conversation
}
