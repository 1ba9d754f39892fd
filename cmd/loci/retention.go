package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/apikey"
	"github.com/loci-memory/loci/server/retention"
)

// orgsKeepCmd shows or changes the retention of an organization.
type orgsKeepCmd struct {
	database
	Name        string `arg:"" help:"Name or ID of the organization."`
	Prompts     *int   `name:"prompts-days" help:"Days of stored prompts; 0 keeps them for good."`
	PromptsKept *int   `name:"prompts-kept" help:"Stored prompts of a conversation, at most; 0 keeps all."`
	LongResults *int   `name:"long-results-days" help:"Days of long results of tools; 0 keeps them for good."`
	Vectors     *int   `name:"vectors-days" help:"Days of vectors of messages; 0 keeps them for good."`
	RunEvents   *int   `name:"run-events-hours" help:"Hours of stored events of background runs; 0 keeps them for good."`
	Runs        *int   `name:"runs-days" help:"Days of records of runs and steps; 0 keeps them for good."`
	Replays     *int   `name:"replays-days" help:"Days of replays of the lab; 0 keeps them for good."`
}

// Run implements the command.
func (c orgsKeepCmd) Run(ctx context.Context, s streams) error {
	return c.withKeys(ctx, s, func(keys *apikey.Store) error {
		o, err := keys.Organization(ctx, c.Name)
		if err != nil {
			return err
		}
		return c.keep(db.WithOrg(ctx, o.Org), s, keys.DB, o.Org)
	})
}

func (c orgsKeepCmd) keep(ctx context.Context, s streams, d db.DB, org db.Org) error {
	store := retention.Store{DB: d}
	now, err := store.Update(ctx, org, func(now *retention.Ages) {
		for to, given := range map[*int]*int{&now.Prompts: c.Prompts, &now.PromptsKept: c.PromptsKept,
			&now.LongResults: c.LongResults, &now.Vectors: c.Vectors,
			&now.RunEvents: c.RunEvents, &now.Runs: c.Runs, &now.Replays: c.Replays} {
			if given != nil {
				*to = *given
			}
		}
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err == nil {
		_, err = fmt.Fprintln(s.out, string(text))
	}
	return err
}
