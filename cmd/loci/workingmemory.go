package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// workingCmd works on the working memory of a conversation.
type workingCmd struct {
	Show   workingShowCmd   `cmd:"" help:"Print a working memory as the agent's prompt shows it."`
	Set    workingSetCmd    `cmd:"" help:"Set an entry: of task, next or last_edit, or in place of another one (--old)."`
	Add    workingAddCmd    `cmd:"" help:"Add an entry to a list, such as decisions."`
	Remove workingRemoveCmd `cmd:"" help:"Remove an entry."`
}

// workingMemory holds the settings of commands on a working memory.
type workingMemory struct {
	remote
	asked
	Agent        string `arg:"" type:"agent" help:"Name or ID of the agent."`
	Conversation string `help:"ID of the conversation; else the agent's default one."`
}

// request sends a request about the working memory, and prints the answer.
func (w workingMemory) request(ctx context.Context, s streams, method string, body any) error {
	agent, err := w.agentID(ctx, w.Agent)
	if err != nil {
		return err
	}
	path := "/v1/conversations/" + url.PathEscape(cmp.Or(w.Conversation, recall.DefaultConversation)) +
		"/working-memory?" + url.Values{"agent_id": {agent}}.Encode()
	var raw json.RawMessage
	var m working.Memory
	err = w.send(ctx, method, path, body, &raw)
	if err = cmp.Or(err, decode(raw, &m)); err != nil {
		return err
	}
	if w.JSON {
		return printJSON(s, raw)
	}
	_, err = fmt.Fprintln(s.out, cmp.Or(m.Text, "It has no entries."))
	return err
}

// change makes one change.
func (w workingMemory) change(ctx context.Context, s streams, change map[string]string) error {
	for field, value := range change {
		if value == "" {
			delete(change, field)
		}
	}
	return w.request(ctx, s, http.MethodPatch, map[string]any{"changes": []any{change}})
}

type workingShowCmd struct{ workingMemory }

func (c workingShowCmd) Run(ctx context.Context, s streams) error {
	return c.request(ctx, s, http.MethodGet, nil)
}

type workingSetCmd struct {
	workingMemory
	Field    string `arg:"" help:"Name of the field, such as task."`
	Text     string `arg:"" help:"The entry."`
	Old      string `help:"The entry of a list that is replaced."`
	Evidence string `help:"Where it is from, such as a file's name."`
}

func (c workingSetCmd) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, map[string]string{"field": c.Field, "action": "set", "text": c.Text, "old": c.Old,
		"evidence": c.Evidence})
}

type workingAddCmd struct {
	workingMemory
	Field    string `arg:"" help:"Name of the list, such as decisions."`
	Text     string `arg:"" help:"The entry."`
	Evidence string `help:"Where it is from, such as a file's name."`
}

func (c workingAddCmd) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, map[string]string{"field": c.Field, "action": "add", "text": c.Text,
		"evidence": c.Evidence})
}

type workingRemoveCmd struct {
	workingMemory
	Field string `arg:"" help:"Name of the field."`
	Text  string `arg:"" optional:"" help:"The entry of a list that is removed."`
}

func (c workingRemoveCmd) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, map[string]string{"field": c.Field, "action": "remove", "text": c.Text})
}
