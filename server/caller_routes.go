package server

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) callerRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/caller",
		"get_caller: Get who a request is from. Its organization, and what its key may do.", s.caller, rest.Own)
}

// Caller describes who sent a request.
type Caller struct {
	OrgID    string   `json:"org_id" doc:"The id of the organization."`
	OrgName  string   `json:"org_name" doc:"The name of the organization."`
	KeyID    string   `json:"key_id" doc:"The id of the API key; empty where none is needed."`
	KeyName  string   `json:"key_name" doc:"What the API key is for; empty where none is needed."`
	Scopes   []string `json:"scopes" doc:"What the key may do: read, tools, write or admin."`
	Operator bool     `json:"operator" doc:"Whether the key manages organizations."`
	Version  string   `json:"version" doc:"Of the server."`
}

func (s *Server) caller(ctx context.Context, _ *struct{}) (Caller, error) {
	orgs, err := s.Keys.Orgs(ctx, rest.Org(ctx), false, db.Page{Limit: 1, Ascending: true})
	if err != nil {
		return Caller{}, err
	}
	if len(orgs) == 0 { // the organization was deleted since the key was looked up
		return Caller{}, db.ErrNotFound
	}
	key := rest.Caller(ctx)
	return Caller{OrgID: orgs[0].ID, OrgName: orgs[0].Name, KeyID: key.ID, KeyName: key.Name, Scopes: key.Scopes,
		Operator: key.Operator, Version: s.Version}, nil
}
