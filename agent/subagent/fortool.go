package subagent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ForTool returns the functions with which the tool start_subagent starts sub-agents.
func (s *Store) ForTool() tool.Subagents {
	return tool.Subagents{Start: s.start, State: s.state, NotGranted: s.notGranted}
}

// start makes a sub-agent that a model asks for. The server runs it, if it has a model for it. If the caller waits for
// it, its result answers the call. It gets tools that the server runs, and the default grants; it only reads blocks.
func (s *Store) start(ctx context.Context, c tool.Caller, asked tool.NewSubagent) (tool.Subagent, error) {
	n := New{ParentID: c.Agent.ID, Conversation: cmp.Or(c.Conversation, recall.DefaultConversation),
		Mode: asked.Mode, Task: asked.Task, Name: asked.Name, Definition: asked.Definition, OTID: tool.OTIDOf(c.Call),
		Runs: true, Awaited: c.Waits, Grants: Grants{Files: nilIfNone(asked.Files)}}
	if c.Waits {
		n.CallID = &c.Call.ID
	}
	n.OnlyTools = asked.Tools
	for _, label := range asked.Blocks {
		n.Blocks = append(n.Blocks, Grant{ID: label, ReadOnly: true})
	}
	if asked.Definition == "" {
		n.Mode, n.Default = cmp.Or(n.Mode, Blank), n.Mode != Fork
	}
	n, err := s.defined(ctx, c.Org, c.Agent, n)
	if err != nil {
		return tool.Subagent{}, err
	}
	if n.OnlyTools, err = s.servedTools(ctx, c, n.OnlyTools, n.Mode); err != nil {
		return tool.Subagent{}, err
	}
	child, err := s.Create(ctx, c.Org, n)
	if errors.Is(err, loop.ErrNoModel) && !c.Waits {
		n.Runs = false
		child, err = s.Create(ctx, c.Org, n)
	}
	switch {
	case errors.Is(err, loop.ErrNoModel):
		return tool.Subagent{}, db.Invalid("This server has no model for the sub-agent. No sub-agent was started.")
	case errors.Is(err, db.ErrTooMany):
		return tool.Subagent{}, db.Invalid("%v. No sub-agent was started.", err)
	}
	return forTool(child), err
}

func nilIfNone(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// servedTools returns the tools of a sub-agent that a model starts: the tools that the model asks for, or all of its
// own. Tools that the client's program runs are left out, because the sub-agent would wait for the program. Nil, for a
// fork, means all tools.
func (s *Store) servedTools(ctx context.Context, c tool.Caller, asked []string, mode string) ([]string, error) {
	definitions, err := s.Agents.Definitions(ctx, c.Org, c.Agent)
	if err != nil {
		return nil, err
	}
	served := []string{}
	for _, d := range definitions {
		isClients := slices.ContainsFunc(c.Agent.Attached, func(t agent.AttachedTool) bool { return t.Name == d.Name })
		if !isClients && (c.Only == nil || slices.Contains(c.Only, d.Name)) {
			served = append(served, d.Name)
		}
	}
	for _, name := range asked {
		if !slices.Contains(served, name) {
			return nil, db.Invalid("You have no tool %q to give: you may give %s. No sub-agent was started.",
				db.Short(name), cmp.Or(strings.Join(served, ", "), "none"))
		}
	}
	switch {
	case asked != nil:
		return asked, nil
	case mode == Fork && len(served) == len(definitions):
		return nil, nil
	}
	return served, nil
}

// state returns a sub-agent as the tool needs it.
func (s *Store) state(ctx context.Context, org db.Org, agentID, id string) (tool.Subagent, error) {
	c, err := s.Child(ctx, org, agentID, id)
	if err != nil {
		return tool.Subagent{}, err
	}
	return forTool(c), nil
}

func forTool(c Child) tool.Subagent {
	t := tool.Subagent{ID: c.ID, ParentID: c.ParentAgentID, Name: c.Name, AgentID: c.AgentID,
		ConversationID: c.ConversationID, Runs: c.Runs}
	if c.Status == Cancelled && c.Result != nil {
		t.Cancelled = *c.Result
	}
	return t
}

// notGranted says in a sentence that the parent of a sub-agent has a tool that the sub-agent lacks; empty if the agent
// is no sub-agent, or its parent lacks the tool, too.
func (s *Store) notGranted(ctx context.Context, org db.Org, a agent.Agent, name string) (string, error) {
	if a.Depth == 0 {
		return "", nil
	}
	parent, err := db.One[string](ctx, s.DB, `
		SELECT p.id FROM children k
		JOIN agents a ON a.org = k.org AND a.key = k.agent_key
		JOIN agents p ON p.org = k.org AND p.key = k.parent_key
		WHERE k.org = $1 AND a.id = $2 AND k.mode <> 'fork'
		ORDER BY k.key LIMIT 1`, org, a.ID)
	if isNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	of, err := s.Agents.Agent(ctx, org, parent)
	if err != nil {
		return "", err
	}
	definitions, err := s.Agents.Definitions(ctx, org, of)
	if !slices.ContainsFunc(definitions, func(d agent.Definition) bool { return d.Name == name }) {
		return "", err
	}
	return tool.NotGrantedBegins + name + ", and did not grant it to you.", nil
}
