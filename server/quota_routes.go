package server

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/quota"
)

func (s *Server) quotaRoutes(a *rest.API) {
	rest.Get(a.For(rest.Admin), "/v1/admin/quotas",
		"get_quotas: Get what the organization may have at most.", s.getQuotas, rest.Own)
	rest.Patch(a.For(rest.Operator), "/v1/admin/quotas",
		"update_quotas: Change what an organization may have at most. Only the operator may. Fields that are absent stay, "+
			"null is no limit. It holds at once, for requests within seconds.", s.updateQuotas, rest.Own)
	rest.Get(a.For(rest.Admin), "/v1/admin/usage",
		"list_usage: List what organizations have. For the operator all of them; for others their own.", s.listUsage,
		rest.Own)
}

func (s *Server) getQuotas(ctx context.Context, input *OfOrg) (quota.Limits, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return quota.Limits{}, err
	}
	return s.Quotas.Limits(ctx, org)
}

// UpdateQuotas holds new quotas; null means no limit.
type UpdateQuotas struct {
	Agents      rest.Opt[int64] `json:"agents,omitzero" minimum:"0" maximum:"9e15" doc:"Agents."`
	StoredBytes rest.Opt[int64] `json:"stored_bytes,omitzero" minimum:"0" maximum:"9e15" doc:"Bytes that usage counts."`
	Requests    rest.Opt[int64] `json:"requests_per_month,omitzero" minimum:"0" maximum:"9e15" doc:"Of a month in UTC."`

	// Of the gateway, in a day in UTC.
	GatewayRequests rest.Opt[int64] `json:"gateway_requests_per_day,omitzero" minimum:"0" maximum:"9e15" doc:"Paid here."`
	GatewayTokens   rest.Opt[int64] `json:"gateway_tokens_per_day,omitzero" minimum:"0" maximum:"9e15" doc:"Paid here."`
}

func (s *Server) updateQuotas(ctx context.Context, input *struct {
	OfOrg
	Body UpdateQuotas
}) (quota.Limits, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return quota.Limits{}, err
	}
	b := input.Body
	limits, err := s.Quotas.Update(ctx, org, func(l *quota.Limits) {
		for _, f := range []struct {
			to    **int64
			given rest.Opt[int64]
		}{{&l.Agents, b.Agents}, {&l.StoredBytes, b.StoredBytes}, {&l.Requests, b.Requests},
			{&l.GatewayRequests, b.GatewayRequests}, {&l.GatewayTokens, b.GatewayTokens}} {
			switch {
			case f.given.Null:
				*f.to = nil
			case f.given.Set:
				*f.to = &f.given.Value
			}
		}
	})
	s.Requests.Forget(org)
	return limits, err
}

func (s *Server) listUsage(ctx context.Context, input *struct {
	rest.Paging
	OrgID rest.OrganizationID `query:"org_id" doc:"For the operator: of this organization only."`
}) ([]quota.OrgUsage, error) {
	org, all := rest.Org(ctx), rest.IsOperator(ctx)
	if input.OrgID != "" {
		namedOrg, err := s.organizationOf(ctx, string(input.OrgID))
		if err != nil {
			return nil, err
		}
		org, all = namedOrg, false
	}
	s.Requests.Flush(ctx)
	return s.Quotas.Usages(ctx, org, all, time.Now(), input.Page(50, rest.OldestFirst))
}

// countRequest counts a request against its organization's quota. Requests of the operator, who sets the quotas, are
// counted but never refused.
func (s *Server) countRequest(ctx context.Context, key apikey.Key) error {
	return s.Requests.Count(db.WithOrg(ctx, key.Org), key.Org, key.Operator)
}
