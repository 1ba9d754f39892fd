package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// grepCmd searches exact text in an agent's files, as the agent does.
type grepCmd struct {
	remote
	asked
	Agent   string `arg:"" type:"agent" help:"Name or ID of the agent."`
	Pattern string `arg:"" help:"Regular expression, as the tool grep_files takes it."`
	Include string `help:"Files whose names match this pattern only, such as '*.go'."`
	Context *int   `help:"Lines before and after each match."`
	Offset  *int   `help:"Matches to skip: where the last answer says that there are more."`
}

func (c grepCmd) Run(ctx context.Context, s streams) error {
	args := map[string]any{"pattern": c.Pattern}
	if c.Include != "" {
		args["include"] = c.Include
	}
	if c.Context != nil {
		args["context_lines"] = *c.Context
	}
	if c.Offset != nil {
		args["offset"] = *c.Offset
	}
	agent, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	err = c.send(ctx, http.MethodPost, "/v1/agents/"+url.PathEscape(agent)+"/tools/grep_files/run",
		map[string]any{"args": args}, &raw)
	if err != nil {
		return err
	}
	var answer struct {
		Return string `json:"func_return"`
		Status string `json:"status"`
	}
	if err := decode(raw, &answer); err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(s, raw)
	}
	if answer.Status == "error" {
		return errors.Join(err, errors.New(answer.Return))
	}
	if c.JSON {
		return err
	}
	_, err = fmt.Fprintln(s.out, strings.TrimSuffix(answer.Return, "\n"))
	return err
}
