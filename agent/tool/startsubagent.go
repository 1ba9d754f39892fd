package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// StartSubagent is the name of the tool that starts a sub-agent.
const StartSubagent = "start_subagent"

// NotGrantedBegins begins what Subagents.NotGranted says.
const NotGrantedBegins = "The agent that gave you your task has the tool "

// Subagents starts sub-agents for agents that call a tool. The zero Subagents starts none.
type Subagents struct {
	// Start makes a sub-agent of the caller. Asked again for the same call of a log, it returns the same one. ErrInvalid
	// for what the caller does not have, and beyond the bounds of sub-agents.
	Start func(ctx context.Context, c Caller, n NewSubagent) (Subagent, error)

	// State returns a sub-agent of an agent. ErrNotFound if there is none.
	State func(ctx context.Context, org db.Org, agentID, id string) (Subagent, error)

	// NotGranted says in a sentence for the model that a sub-agent lacks a tool that its parent has. It is empty if the
	// agent is no sub-agent, or its parent lacks the tool, too.
	NotGranted func(ctx context.Context, org db.Org, a agent.Agent, name string) (string, error)
}

// NewSubagent is what a model asks for. Nil Tools stands for all tools of the model.
type NewSubagent struct {
	Task, Mode, Name     string
	Definition           string // empty: none
	Tools, Blocks, Files []string
}

// Subagent is a sub-agent. Runs reports whether the server runs it; otherwise the caller's program does.
type Subagent struct {
	ID, ParentID, Name      string
	AgentID, ConversationID string
	Runs                    bool
	Cancelled               string // why it was cancelled; empty if it was not
}

type startArgs struct {
	Task   text       `json:"task"`
	Mode   text       `json:"mode"`
	Name   text       `json:"name"`
	Type   text       `json:"definition"`
	Tools  list[text] `json:"tools"`
	Blocks list[text] `json:"blocks"`
	Files  list[text] `json:"files"`
}

// startSubagent starts a sub-agent. If the caller waits for it, the result only names it: what it returns becomes the
// call's result.
func (m Memories) startSubagent(ctx context.Context, c Caller, a startArgs) (Result, error) {
	if strings.TrimSpace(string(a.Task)) == "" {
		return Result{}, db.Invalid("No task given. Say in task what the sub-agent is to do, and what it is to return.")
	}
	if m.Subagents.Start == nil {
		return Result{}, db.Invalid("This server starts no sub-agents.")
	}
	n := NewSubagent{Task: string(a.Task), Mode: string(a.Mode), Name: string(a.Name), Definition: string(a.Type),
		Files: plain(a.Files)}
	if a.Tools != nil {
		n.Tools = plain(a.Tools)
	}
	if a.Blocks != nil {
		n.Blocks = plain(a.Blocks)
	}
	s, err := m.Subagents.Start(ctx, c, n)
	if err != nil {
		return Result{}, err
	}
	if c.Waits {
		return Result{Subagent: s.ID}, nil
	}
	return Result{Text: started(c, s)}, nil
}

// started says which sub-agent works for a caller that does not wait for it, and how its result comes.
func started(c Caller, s Subagent) string {
	head := fmt.Sprintf("The sub-agent %s (%s) has its task.", s.ID, line(s.Name))
	back := " Its result is no result of this call: it comes to this conversation as a message once the sub-agent has " +
		"returned."
	if !s.Runs {
		back += fmt.Sprintf(" This server has no model for it. The program that calls you runs it as the agent %s in the "+
			"conversation %s, and ends it with POST /v1/agents/%s/children/%s/return.", s.AgentID, s.ConversationID,
			s.ParentID, s.ID)
	}
	return head + back + c.has().Hint("expand", fmt.Sprintf(" expand(id=%q) reads its log.", s.ID))
}

// OTIDOf returns the id of the request that a call is for a sub-agent: the same one each time the call is run. It is
// nil for a call that no log has.
func OTIDOf(call *recall.CallPlace) *string {
	if call == nil {
		return nil
	}
	return new(fmt.Sprintf("call-%s-%d-%s", call.Conversation, call.Position, call.ID))
}

// definedSubagents lists the definitions of sub-agents that an agent may start by name.
func definedSubagents(c Caller) string {
	if len(c.Agent.Subagents) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Definitions:")
	for _, d := range c.Agent.Subagents {
		fmt.Fprintf(&b, "\n- %s: %s", d.Name, line(d.Description))
	}
	return b.String()
}
