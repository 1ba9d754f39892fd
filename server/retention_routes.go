package server

import (
	"context"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/retention"
)

func (s *Server) retentionRoutes(a *rest.API) {
	rest.Get(a.For(rest.Admin), "/v1/admin/retention",
		"get_retention: Get how long the organization keeps stored prompts, long results and vectors.",
		s.getRetention, rest.Own)
	rest.Patch(a.For(rest.Admin), "/v1/admin/retention",
		"update_retention: Change how long the organization keeps what it stores. Fields that are absent stay.",
		s.updateRetention, rest.Own)
}

func (s *Server) getRetention(ctx context.Context, _ *struct{}) (retention.Ages, error) {
	return s.Retention.Settings(ctx, rest.Org(ctx))
}

// UpdateRetention are new days; 0 is for good.
type UpdateRetention struct {
	Prompts     rest.Opt[int] `json:"prompts_days,omitzero" doc:"Stored prompts." example:"30"`
	PromptsKept rest.Opt[int] `json:"prompts_kept,omitzero" doc:"Stored prompts of a conversation, at most."`
	LongResults rest.Opt[int] `json:"long_results_days,omitzero" doc:"Long results of tools, outside of the log."`
	Vectors     rest.Opt[int] `json:"vectors_days,omitzero" doc:"Vectors of messages, which words then find."`
}

func (s *Server) updateRetention(ctx context.Context, in *struct{ Body UpdateRetention }) (
	retention.Ages, error) {
	b := in.Body
	return s.Retention.Update(ctx, rest.Org(ctx), func(now *retention.Ages) {
		for _, f := range []struct {
			to    *int
			given rest.Opt[int]
		}{{&now.Prompts, b.Prompts}, {&now.PromptsKept, b.PromptsKept},
			{&now.LongResults, b.LongResults}, {&now.Vectors, b.Vectors}} {
			if f.given.Set {
				*f.to = f.given.Value
			}
		}
	})
}
