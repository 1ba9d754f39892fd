package mcp

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/files"
)

// lists describes an agent's lists of resources and tools: each text changes when its list changes. Memory files are
// left out, because events report their changes.
type lists struct{ resources, tools string }

func (s *Server) listsOf(ctx context.Context, h *hub) (l lists, err error) {
	users, err := s.users(ctx, Caller{Org: h.org, AgentID: h.agentID, User: h.user})
	if err != nil {
		return l, err
	}
	filed, err := s.Files.ListState(ctx, h.org, files.Reach{AgentID: h.agentID, Users: users})
	if err != nil {
		return l, err
	}
	talks, err := s.Recall.ListState(ctx, h.org, h.agentID, users)
	if err != nil {
		return l, err
	}
	parts := []string{filed, talks}
	owned, err := s.Blocks.OfAgent(ctx, h.org, h.agentID)
	if err != nil {
		return l, err
	}
	for _, b := range owned {
		parts = append(parts, b.Label)
	}
	tools, err := s.toolsOf(ctx, caller{Caller: Caller{Org: h.org, AgentID: h.agentID, MayCall: true}})
	if err != nil {
		return l, err
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return lists{strings.Join(parts, "\x00"), strings.Join(names, " ")}, nil
}

// lookAtLists tells the hub's clients if a list differs from known, or in any case if anyway is set. It returns the
// current lists.
func (s *Server) lookAtLists(ctx context.Context, h *hub, known lists, anyway bool) lists {
	current, err := s.listsOf(ctx, h)
	if err != nil {
		s.Log.WarnContext(ctx, "look at the lists of an agent whose clients follow it over MCP", "agent", h.agentID,
			"error", err)
		return known
	}
	if anyway || current.resources != known.resources {
		listChanged(h.server)
	}
	if anyway || current.tools != known.tools {
		toolsChanged(h.server)
	}
	return current
}
