package server

import (
	"context"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/server/rest"
)

// absentRoutes adds routes that list things which Letta has and Loci does not. The lists are empty. Some clients read
// them at their start, and would end at an error.
func (s *Server) absentRoutes(a *rest.API) {
	const none = " It is empty, because Loci has none."
	rest.Get(a.For(rest.Read), "/v1/groups", "list_groups: List groups of agents."+none, absent)
	rest.Get(a.For(rest.Read), "/v1/groups/count", "count_groups: Count groups of agents. There is none.",
		func(context.Context, *struct{}) (int, error) { return 0, nil })
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/groups", "list_agent_groups: List an agent's groups."+none,
		withAgent(s, func(context.Context, agent.Agent, *rest.OfAgent) ([]struct{}, error) { return []struct{}{}, nil }))
	rest.Get(a.For(rest.Read), "/v1/mcp-servers", "list_mcp_servers: List MCP servers."+none, absent)
	rest.Get(a.For(rest.Read), "/v1/tools/mcp/servers", "list_named_mcp_servers: List MCP servers by name."+none,
		func(context.Context, *struct{}) (map[string]struct{}, error) { return map[string]struct{}{}, nil })
	rest.Get(a.For(rest.Read), "/v1/providers", "list_providers: List providers that clients added."+none, absent)
	rest.Get(a.For(rest.Read), "/v1/sandbox-config", "list_sandbox_configs: List configurations of sandboxes."+none,
		absent)
}

func absent(context.Context, *struct{ rest.Paging }) ([]struct{}, error) { return []struct{}{}, nil }
