package server

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// keysOf returns the organization that a request is limited to when it asks for keys and jobs; 0 if it may see all.
func keysOf(ctx context.Context) db.Org {
	if rest.IsOperator(ctx) {
		return 0
	}
	return rest.Org(ctx)
}

// organizationOf returns the organization with an id. ErrNotFound if the request may not see the organization.
func (s *Server) organizationOf(ctx context.Context, id string) (db.Org, error) {
	o, err := s.Keys.Organization(ctx, id)
	if err == nil && keysOf(ctx) != 0 && o.Org != rest.Org(ctx) {
		err = db.NotFound("Organization with ID %s not found", id)
	}
	return o.Org, err
}

// OfOrg is the query parameter with which the operator names another organization.
type OfOrg struct {
	OrgID rest.OrganizationID `query:"org_id" doc:"For the operator: of this organization, not of the key's own."`
}

// orgNamed returns the organization that a request names; without a name, the key's own. ErrNotFound if the request may
// not see the organization.
func (s *Server) orgNamed(ctx context.Context, id rest.OrganizationID) (db.Org, error) {
	if id == "" {
		return rest.Org(ctx), nil
	}
	return s.organizationOf(ctx, string(id))
}
