package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/loci-memory/loci/db/job"
	"github.com/loci-memory/loci/server/rest"
)

// jobsCmd lists background jobs.
type jobsCmd struct {
	remote
	asked
	State string `enum:",waiting,running,retrying,completed,failed,cancelled" default:"" help:"Only those in this state."`
	Kind  string `help:"Only those that do this."`
}

func (c jobsCmd) Run(ctx context.Context, s streams) error {
	filter := url.Values{"order": {rest.NewestFirst}}
	for name, value := range map[string]string{"state": c.State, "kind": c.Kind} {
		if value != "" {
			filter.Set(name, value)
		}
	}
	all, err := listAll[job.Job](ctx, c.remote, "/v1/admin/jobs", filter)
	if err != nil {
		return err
	}
	return printList(s, c.asked, all, "ID | KIND | STATE | ORGANIZATION | ATTEMPTS | DONE | CREATED | ERROR",
		func(j job.Job) []string {
			return []string{j.ID, j.Kind, j.State, textOf(j.OrgName), attemptsOf(j), doneOf(j), shownTime(&j.CreatedAt),
				textOf(j.Error)}
		})
}

// attemptsOf formats how often a job was tried; empty for a job that runs in slices.
func attemptsOf(j job.Job) string {
	if j.MaxAttempts == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts)
}

// doneOf formats the progress of a job that runs in slices.
func doneOf(j job.Job) string {
	switch {
	case j.Done == nil:
		return ""
	case j.Total == nil:
		return fmt.Sprint(*j.Done)
	}
	return fmt.Sprintf("%d of %d", *j.Done, *j.Total)
}
