package main

import (
	"context"
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/loci-memory/loci/agent"
)

// statsCmd prints the contents of an agent's conversations, and how their prompts grow.
type statsCmd struct {
	remote
	asked
	Agent    string `arg:"" type:"agent" help:"Name or ID of the agent."`
	Sessions int    `default:"15" help:"The newest conversations that are counted, from 1 to 100."`
}

func (c statsCmd) Run(ctx context.Context, s streams) error {
	id, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	var stats agent.Stats
	target := fmt.Sprintf("/v1/agents/%s/stats?sessions=%d", url.PathEscape(id), c.Sessions)
	if err := c.get(ctx, target, &stats); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, stats)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tCATEGORY\tMESSAGES\tCHARACTERS\tTOKENS\tSHARE")
	for _, session := range stats.Sessions {
		categories(w, session.ConversationID, session.Categories)
	}
	categories(w, "all", stats.Total)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, session := range stats.Sessions {
		if session.Growing {
			fmt.Fprintf(s.out, "Prompts of %s grow by %.0f tokens each, of a window of %d.\n", session.ConversationID,
				session.Slope, session.Window)
		}
	}
	for _, e := range stats.Expands {
		fmt.Fprintf(s.out, "expand read %q %d times\n", e.ID, e.Count)
	}
	for _, e := range stats.Steps {
		fmt.Fprintf(s.out, "of %d messages that the step %s of the policy %s edited, expand read %d times\n", e.Messages,
			e.Step, e.Policy, e.Expands)
	}
	return nil
}

// categories prints the categories of messages in a session.
func categories(w *tabwriter.Writer, session string, all []agent.Category) {
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.1f %%\n", session, c.Category, c.Messages, c.Chars, c.Tokens, 100*c.Share)
	}
}
