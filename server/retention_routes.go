package server

import (
	"context"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/retention"
)

func (s *Server) retentionRoutes(a *rest.API) {
	rest.Get(a.For(rest.Admin), "/v1/admin/retention",
		"get_retention: Get how long the organization keeps stored prompts, long results and vectors.",
		s.getRetention, rest.Own)
	rest.Patch(a.For(rest.Admin), "/v1/admin/retention",
		"update_retention: Change how long the organization keeps what it stores. Fields that are absent stay, null "+
			"restores a default.",
		s.updateRetention, rest.Own)
}

func (s *Server) getRetention(ctx context.Context, input *OfOrg) (retention.Ages, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return retention.Ages{}, err
	}
	return s.Retention.Settings(ctx, org)
}

// UpdateRetention holds new retention times in days. 0 keeps for good, null restores the default.
type UpdateRetention struct {
	Prompts     rest.Opt[int] `json:"prompts_days,omitzero" doc:"Stored prompts." example:"30"`
	PromptsKept rest.Opt[int] `json:"prompts_kept,omitzero" doc:"Stored prompts of a conversation, at most."`
	LongResults rest.Opt[int] `json:"long_results_days,omitzero" doc:"Long results of tools, outside of the log."`
	Vectors     rest.Opt[int] `json:"vectors_days,omitzero" doc:"Vectors of messages, which words then find."`
	RunEvents   rest.Opt[int] `json:"run_events_hours,omitzero" doc:"Stored events of background runs, in hours."`
	Runs        rest.Opt[int] `json:"runs_days,omitzero" doc:"Records of runs and of their steps."`
	Replays     rest.Opt[int] `json:"replays_days,omitzero" doc:"Replays of the lab, with their sessions."`
}

func (s *Server) updateRetention(ctx context.Context, input *struct {
	OfOrg
	Body UpdateRetention
}) (retention.Ages, error) {
	b := input.Body
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return retention.Ages{}, err
	}
	usual := retention.Defaults()
	return s.Retention.Update(ctx, org, func(ages *retention.Ages) {
		for _, f := range []struct {
			to    *int
			given rest.Opt[int]
			usual int
		}{{&ages.Prompts, b.Prompts, usual.Prompts}, {&ages.PromptsKept, b.PromptsKept, usual.PromptsKept},
			{&ages.LongResults, b.LongResults, usual.LongResults}, {&ages.Vectors, b.Vectors, usual.Vectors},
			{&ages.RunEvents, b.RunEvents, usual.RunEvents}, {&ages.Runs, b.Runs, usual.Runs},
			{&ages.Replays, b.Replays, usual.Replays}} {
			switch {
			case f.given.Null:
				*f.to = f.usual
			case f.given.Set:
				*f.to = f.given.Value
			}
		}
	})
}
