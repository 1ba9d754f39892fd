package main

import (
	"context"

	"github.com/loci-memory/loci/tenant/retention"
)

// orgsKeepCmd shows or changes the retention of an organization.
type orgsKeepCmd struct {
	admin
	asked
	Name        string `arg:"" help:"Name or ID of the organization."`
	Prompts     *int   `name:"prompts-days" help:"Days of stored prompts; 0 keeps them for good."`
	PromptsKept *int   `name:"prompts-kept" help:"Stored prompts of a conversation, at most; 0 keeps all."`
	LongResults *int   `name:"long-results-days" help:"Days of long results of tools; 0 keeps them for good."`
	Vectors     *int   `name:"vectors-days" help:"Days of vectors of messages; 0 keeps them for good."`
	RunEvents   *int   `name:"run-events-hours" help:"Hours of stored events of background runs; 0 keeps them for good."`
	Runs        *int   `name:"runs-days" help:"Days of records of runs and steps; 0 keeps them for good."`
	Replays     *int   `name:"replays-days" help:"Days of replays of the lab; 0 keeps them for good."`
}

func (c orgsKeepCmd) Run(ctx context.Context, s streams) error {
	change := map[string]int{}
	for field, value := range map[string]*int{"prompts_days": c.Prompts, "prompts_kept": c.PromptsKept,
		"long_results_days": c.LongResults, "vectors_days": c.Vectors, "run_events_hours": c.RunEvents,
		"runs_days": c.Runs, "replays_days": c.Replays} {
		if value != nil {
			change[field] = *value
		}
	}
	ages := retention.Defaults()
	changeAges(&ages, change)
	if err := ages.Check(); err != nil {
		return settingError{err}
	}
	return c.with(ctx, s, false, func(a administration) error {
		updated, err := a.UpdateRetention(ctx, c.Name, change)
		if err != nil {
			return err
		}
		return printFields(s, c.asked, "SETTING | KEPT", updated)
	})
}
