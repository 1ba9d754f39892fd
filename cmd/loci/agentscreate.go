package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/loci-memory/loci/agent"
)

type agentsCreateCmd struct {
	remote
	asked
	Name        string   `arg:"" optional:"" help:"Name of the agent; without one the server makes one up."`
	Model       string   `help:"Handle of the model that it runs with, such as openai/gpt-4o."`
	Window      int      `help:"Size of the model's context window, in tokens."`
	Description string   `help:"What the agent is for."`
	System      string   `type:"existingfile" help:"File with its system prompt."`
	Block       []string `sep:"none" placeholder:"LABEL=TEXT" help:"A core memory block; @FILE is read. May be repeated."`
	Folder      []string `sep:"none" help:"Name or ID of a folder that it may read. May be repeated."`
	Policy      string   `help:"How its context window is kept, such as letta: GET /v1/policies lists them."`
	Timezone    string   `help:"Its timezone, such as Europe/Oslo."`
	Fields      string   `type:"existingfile" help:"JSON file with further fields, for POST /v1/agents."`
}

func (c agentsCreateCmd) Run(ctx context.Context, s streams) error {
	request, err := c.request(ctx, s)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	var created agent.Agent
	err = c.send(ctx, http.MethodPost, "/v1/agents", request, &raw)
	if err = cmp.Or(err, decode(raw, &created)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	_, err = fmt.Fprintln(s.out, created.ID)
	return err
}

// request returns the body of the request. Flags replace fields of the file.
func (c agentsCreateCmd) request(ctx context.Context, s streams) (map[string]any, error) {
	request := map[string]any{}
	if c.Fields != "" {
		text, err := readAll(ctx, s, c.Fields)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &request); err != nil {
			return nil, settingError{fmt.Errorf("--fields=%s must be a JSON object: %w", c.Fields, err)}
		}
	}
	for field, value := range map[string]string{"name": c.Name, "model": c.Model, "description": c.Description,
		"timezone": c.Timezone} {
		if value != "" {
			request[field] = value
		}
	}
	if c.Window != 0 {
		request["context_window_limit"] = c.Window
	}
	if c.Policy != "" {
		request["compaction_settings"] = map[string]any{"policy": c.Policy}
	}
	if c.System != "" {
		text, err := os.ReadFile(c.System)
		if err != nil {
			return nil, err
		}
		request["system"] = string(text)
	}
	return request, errors.Join(c.addBlocks(request), c.addFolders(ctx, request))
}

func (c agentsCreateCmd) addBlocks(request map[string]any) error {
	if len(c.Block) == 0 {
		return nil
	}
	var blocks []map[string]string
	for _, given := range c.Block {
		label, text, found := strings.Cut(given, "=")
		if !found {
			return settingError{fmt.Errorf("--block=%s must be LABEL=TEXT or LABEL=@FILE", given)}
		}
		if file, ok := strings.CutPrefix(text, "@"); ok {
			content, err := os.ReadFile(file) // #nosec G304 -- the user names it
			if err != nil {
				return err
			}
			text = string(content)
		}
		blocks = append(blocks, map[string]string{"label": label, "value": text})
	}
	request["memory_blocks"] = blocks
	return nil
}

func (c agentsCreateCmd) addFolders(ctx context.Context, request map[string]any) error {
	var ids []string
	for _, nameOrID := range c.Folder {
		f, err := c.findFolder(ctx, nameOrID)
		if err != nil {
			return err
		}
		ids = append(ids, f.ID)
	}
	if ids != nil {
		request["folder_ids"] = ids
	}
	return nil
}

type agentsDeleteCmd struct {
	remote
	asked
	Agent string `arg:"" type:"agent" help:"Name or ID of the agent."`
	Yes   bool   `help:"Delete it without asking."`
}

func (c agentsDeleteCmd) Run(ctx context.Context, s streams) error {
	id, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := confirm(s, fmt.Sprintf("the agent %q (%s) with its conversations", c.Agent, id)); err != nil {
			return err
		}
	}
	if err := c.send(ctx, http.MethodDelete, "/v1/agents/"+url.PathEscape(id), nil, nil); err != nil || !c.JSON {
		return err
	}
	return printJSON(s, map[string]string{"id": id})
}
