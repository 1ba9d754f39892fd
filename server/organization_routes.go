package server

import (
	"context"

	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) organizationRoutes(a *rest.API) {
	const path = "/v1/admin/orgs"
	rest.Get(a.For(rest.Read), path,
		"list_orgs: List organizations. All of them for the operator; for others their own.", s.listOrgs)
	rest.Post(a.For(rest.Operator), path, "create_org: Create an organization. Only the operator may.", s.createOrg)
	rest.Patch(a.For(rest.Operator), path, "update_org: Rename an organization. Only the operator may.", s.updateOrg)
	rest.Delete(a.For(rest.Operator), path,
		"delete_org: Delete an organization with everything in it. Only the operator may. Its keys stop "+
			"working at once; its data is deleted in the background.", s.deleteOrg)
}

func (s *Server) listOrgs(ctx context.Context, input *struct{ rest.Paging }) ([]letta.Organization, error) {
	list, err := s.Keys.Orgs(ctx, rest.Org(ctx), rest.IsOperator(ctx), input.Page(50, rest.OldestFirst))
	return rest.Each(list, letta.OrganizationOf), err
}

func (s *Server) createOrg(ctx context.Context, input *struct{ Body letta.NameOrganization }) (letta.Organization,
	error) {
	o, err := s.Keys.CreateOrg(ctx, input.Body.Name)
	return letta.OrganizationOf(o), err
}

// OfOrganization names an organization in the query, as Letta's API does.
type OfOrganization struct {
	ID rest.OrganizationID `query:"org_id" required:"true"`
}

func (s *Server) updateOrg(ctx context.Context, input *struct {
	OfOrganization
	Body letta.NameOrganization
}) (letta.Organization, error) {
	o, err := s.Keys.RenameOrg(ctx, string(input.ID), input.Body.Name)
	return letta.OrganizationOf(o), err
}

func (s *Server) deleteOrg(ctx context.Context, input *OfOrganization) (letta.Organization, error) {
	o, err := s.Keys.DeleteOrg(ctx, string(input.ID))
	return letta.OrganizationOf(o), err
}
