package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/loci-memory/loci/agent/handover"
)

// handoversCmd lists the hand-overs of an agent, and decides on their updates.
type handoversCmd struct {
	List    handoversListCmd    `cmd:"" help:"List the hand-overs of an agent with their updates, the newest first."`
	Approve handoversApproveCmd `cmd:"" help:"Apply updates of a hand-over that wait for an operator."`
	Reject  handoversRejectCmd  `cmd:"" help:"Reject updates of a hand-over that wait for an operator."`
}

// ofAgent holds the settings of commands on the hand-overs of an agent.
type ofAgent struct {
	remote
	asked
	Agent string `arg:"" type:"agent" help:"Name or ID of the agent."`
}

type handoversListCmd struct {
	ofAgent
	Limit int `default:"20" help:"The most hand-overs, from 1 to 100."`
}

func (c handoversListCmd) Run(ctx context.Context, s streams) error {
	id, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	var all []handover.Handover
	err = c.get(ctx, fmt.Sprintf("/v1/agents/%s/handovers?limit=%d", url.PathEscape(id), c.Limit), &raw)
	if err = cmp.Or(err, decode(raw, &all)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	var rows [][]string
	for _, h := range all {
		rows = append(rows, []string{h.ID, "", h.Status, shownTime(&h.CreatedAt), h.ConversationID})
		for _, u := range h.Updates {
			rows = append(rows, []string{h.ID, fmt.Sprint(u.Number), u.Status, u.Target, u.Text})
		}
	}
	return printTable(s, "HANDOVER | UPDATE | STATUS | TARGET OR TIME | TEXT OR CONVERSATION", rows)
}

// decision holds the arguments of a decision on updates.
type decision struct {
	ofAgent
	Handover string `arg:"" help:"ID of the hand-over."`
	Update   int    `arg:"" optional:"" help:"Number of the update; else all that wait."`
}

// decide sends a decision, approve or reject, and prints the updates.
func (c decision) decide(ctx context.Context, s streams, verb string) error {
	id, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	path := "/v1/agents/" + url.PathEscape(id) + "/handovers/" + url.PathEscape(c.Handover)
	if c.Update != 0 {
		path += fmt.Sprintf("/updates/%d", c.Update)
	}
	var raw json.RawMessage
	var h handover.Handover
	err = c.send(ctx, http.MethodPost, path+"/"+verb, nil, &raw)
	if err = cmp.Or(err, decode(raw, &h)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	rows := make([][]string, len(h.Updates))
	for i, u := range h.Updates {
		rows[i] = []string{fmt.Sprint(u.Number), u.Status, u.Target, u.Text, textOf(u.Why)}
	}
	return printTable(s, "UPDATE | STATUS | TARGET | TEXT | WHY", rows)
}

type handoversApproveCmd struct{ decision }

func (c handoversApproveCmd) Run(ctx context.Context, s streams) error {
	return c.decide(ctx, s, "approve")
}

type handoversRejectCmd struct{ decision }

func (c handoversRejectCmd) Run(ctx context.Context, s streams) error {
	return c.decide(ctx, s, "reject")
}
