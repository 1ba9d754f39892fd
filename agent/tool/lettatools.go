package tool

import (
	"context"
	"fmt"
)

type finishEditsArgs struct{}

// finishEdits does nothing: the call itself says that the edits of memory have ended.
func (m Memories) finishEdits(context.Context, Caller, finishEditsArgs) (Result, error) {
	return Result{Text: "None"}, nil // Letta's result
}

// notHere maps the tools of Letta's that no agent has here to the reason.
var notHere = map[string]string{
	"run_code":                    noCode,
	"run_code_with_tools":         noCode,
	"web_search":                  noWeb,
	"fetch_webpage":               noWeb,
	"send_message_to_agent_async": noAgents,
	"send_message_to_agent_and_wait_for_reply": noAgents,
	"send_message_to_agents_matching_tags":     noAgents,
	"store_memories":                           noVoice,
	"rethink_user_memory":                      noVoice,
	"finish_rethinking_memory":                 noVoice,
}

const (
	noCode   = "this server runs no code of others"
	noWeb    = "this server does not reach the web"
	noAgents = "this server sends no messages between agents"
	noVoice  = "this server has no agents for voice"
)

// MultiAgent are Letta's tools for messages between agents, as include_multi_agent_tools adds them there.
var MultiAgent = []string{"send_message_to_agent_and_wait_for_reply", "send_message_to_agents_matching_tags",
	"send_message_to_agent_async"}

// WhyAbsent says why this server does not have a tool of Letta's; empty for other names.
func WhyAbsent(name string) string { return notHere[name] }

// NotRun returns what the model is told that calls a tool of Letta's which this server does not have; empty for other
// names.
func NotRun(name string) string {
	why := notHere[name]
	if why == "" {
		return ""
	}
	return fmt.Sprintf("This server does not run %s: %s. Do without it, and do not call it again.", name, why)
}
