package mcp

import (
	"context"
	"strings"
)

// lists say how the lists of an agent's resources and tools are: each text is another once its list is. The list of
// memory files is not among them, because an event reports each of its changes.
type lists struct{ resources, tools string }

func (s *Server) listsOf(ctx context.Context, h *hub) (l lists, err error) {
	files, err := s.Files.ListState(ctx, h.org, h.agentID)
	if err != nil {
		return l, err
	}
	talks, err := s.Recall.ListState(ctx, h.org, h.agentID)
	if err != nil {
		return l, err
	}
	parts := []string{files, talks}
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

// lookAtLists tells the hub's clients if a list is not as it was, or anyway, and returns how the lists are.
func (s *Server) lookAtLists(ctx context.Context, h *hub, was lists, anyway bool) lists {
	is, err := s.listsOf(ctx, h)
	if err != nil {
		s.Log.WarnContext(ctx, "look at the lists of an agent whose clients follow it over MCP", "agent", h.agentID,
			"error", err)
		return was
	}
	if anyway || is.resources != was.resources {
		listChanged(h.server)
	}
	if anyway || is.tools != was.tools {
		toolsChanged(h.server)
	}
	return is
}
