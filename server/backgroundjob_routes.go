package server

import (
	"context"

	"github.com/loci-memory/loci/db/job"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) backgroundJobRoutes(a *rest.API) {
	rest.Get(a.For(rest.Admin), "/v1/admin/jobs",
		"list_background_jobs: List what servers work on in the background, the newest first. The jobs of the queues, and "+
			"what is too long for one: replays, erasures, vectors of another model, deletions of organizations. For the "+
			"operator those of all organizations; for others those of their own.", s.listBackgroundJobs, rest.Own)
}

func (s *Server) listBackgroundJobs(ctx context.Context, input *struct {
	rest.Paging
	State string              `query:"state" enum:"waiting,running,retrying,completed,failed,cancelled" doc:"Only these."`
	Kind  string              `query:"kind" doc:"Only those that do this."`
	OrgID rest.OrganizationID `query:"org_id" doc:"For the operator: of this organization only."`
}) ([]job.Job, error) {
	org := keysOf(ctx)
	if input.OrgID != "" {
		namedOrg, err := s.organizationOf(ctx, string(input.OrgID))
		if err != nil {
			return nil, err
		}
		org = namedOrg
	}
	query := job.Query{Org: org, State: input.State, Kind: input.Kind}
	return job.List(ctx, s.DB, query, input.Page(50, rest.NewestFirst))
}
