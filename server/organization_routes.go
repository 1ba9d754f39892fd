package server

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/apikey"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) organizationRoutes(a *rest.API) {
	const path = "/v1/admin/orgs"
	rest.Get(a, path, "list_orgs: List organizations. All of them for the operator; for others their own.", s.listOrgs)
	rest.Post(a, path, "create_org: Create an organization. Only the operator may.", s.createOrg)
	rest.Patch(a, path, "update_org: Rename an organization. Only the operator may.", s.updateOrg)
	rest.Delete(a, path, "delete_org: Delete an organization with everything in it. Only the operator may. Its keys stop "+
		"working at once; its data is deleted in the background.", s.deleteOrg)
}

func (s *Server) listOrgs(ctx context.Context, in *struct{ rest.Paging }) ([]letta.Organization, error) {
	own := rest.Org(ctx)
	if rest.IsOperator(ctx) {
		own = 0
	}
	list, err := s.Keys.Orgs(ctx, own, in.Page(50, rest.OldestFirst))
	return rest.Each(list, letta.OrganizationOf), err
}

func (s *Server) createOrg(ctx context.Context, in *struct{ Body letta.NameOrganization }) (letta.Organization, error) {
	if !rest.IsOperator(ctx) {
		return letta.Organization{}, operatorsOnly()
	}
	o, err := s.Keys.CreateOrg(ctx, in.Body.Name)
	return letta.OrganizationOf(o), err
}

// OfOrganization names an organization in the query, as Letta does.
type OfOrganization struct {
	ID rest.OrganizationID `query:"org_id" required:"true"`
}

func (s *Server) updateOrg(ctx context.Context, in *struct {
	OfOrganization
	Body letta.NameOrganization
}) (letta.Organization, error) {
	return s.changeOrg(ctx, in.OfOrganization, func(id string) (apikey.Organization, error) {
		return s.Keys.RenameOrg(ctx, id, in.Body.Name)
	})
}

func (s *Server) deleteOrg(ctx context.Context, in *OfOrganization) (letta.Organization, error) {
	return s.changeOrg(ctx, *in, func(id string) (apikey.Organization, error) { return s.Keys.DeleteOrg(ctx, id) })
}

// changeOrg calls change for the operator. To anybody else, only their own organization exists.
func (s *Server) changeOrg(
	ctx context.Context, in OfOrganization, change func(id string) (apikey.Organization, error),
) (letta.Organization, error) {
	if !rest.IsOperator(ctx) {
		o, err := s.Keys.Organization(ctx, string(in.ID))
		if err == nil && o.Org != rest.Org(ctx) {
			err = db.NotFound("Organization with ID %s not found", in.ID)
		}
		if err == nil {
			err = operatorsOnly()
		}
		return letta.Organization{}, err
	}
	o, err := change(string(in.ID))
	return letta.OrganizationOf(o), err
}

func operatorsOnly() *rest.Problem {
	return rest.Forbidden("Only the operator may create, rename and delete organizations: use a key of " +
		"'loci keys create --operator', or the command 'loci orgs' on the server's machine")
}
