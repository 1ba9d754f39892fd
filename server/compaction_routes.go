package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) compactionRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/summarize",
		"compact_agent: Compact an agent's default conversation. With dry_run, only the plan is answered.", s.summarize,
		rest.Slow(modelTimeout))
	rest.Post(a.For(rest.Write), "/v1/conversations/{conversation_id}/compact",
		"compact_conversation: Compact a conversation. With dry_run, only the plan is answered.", s.compactConversation,
		rest.Slow(modelTimeout))
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/compactions",
		"list_compactions: List the compactions of an agent's conversations.", s.listCompactions, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/compactions/{compaction_id}",
		"get_compaction: Get a compaction.",
		s.getCompaction, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/compactions/{compaction_id}/revert",
		"revert_compaction: Restore the view that a conversation had before a compaction. Only the last compaction of a "+
			"conversation can be reverted.",
		s.revertCompaction, rest.Own)
}

func (s *Server) summarize(ctx context.Context, input *struct {
	rest.OfAgent
	Dry  bool `query:"dry_run" doc:"Only say what would be done."`
	Body letta.CompactRequest
}) (letta.Compacted, error) {
	err := input.Body.CheckConversation("default", "POST /v1/conversations/{conversation_id}/compact")
	if err != nil {
		return letta.Compacted{}, err
	}
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(input.AgentID), recall.DefaultConversation)
	if err != nil {
		return letta.Compacted{}, err
	}
	return s.compact(ctx, c, input.Body, input.Dry)
}

func (s *Server) compactConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Dry  bool `query:"dry_run" doc:"Only say what would be done."`
	Body struct {
		letta.CompactRequest
		AgentID rest.Opt[string] `json:"agent_id,omitzero"`
	}
}) (letta.Compacted, error) {
	if err := input.Body.CheckConversation(string(input.ConversationID), "it in the path"); err != nil {
		return letta.Compacted{}, err
	}
	c, err := s.named(ctx, input.OfConversation, input.AgentID, input.Body.AgentID.Value)
	if err != nil {
		return letta.Compacted{}, err
	}
	return s.compact(ctx, c, input.Body.CompactRequest, input.Dry)
}

func (s *Server) compact(ctx context.Context, c recall.Conversation, r letta.CompactRequest, dry bool) (
	letta.Compacted, error,
) {
	if err := r.Check(); err != nil {
		return letta.Compacted{}, err
	}
	done, err := s.Agents.Compact(ctx, rest.Org(ctx), c,
		agent.CompactOptions{Settings: json.RawMessage(r.Settings.Value.Object), Dry: dry || r.Dry.Value,
			Focus: r.Focus.Value})
	out := letta.Compacted{Plan: done.Plan, Compaction: done.Made, Before: done.Sent, After: done.Left}
	if nothing, isNothing := errors.AsType[*plan.Nothing](err); isNothing && answersEqual(c, *nothing) {
		out.Unchanged = new(nothing.Error())
		return out, nil
	}
	if err != nil {
		return letta.Compacted{}, err
	}
	if done.Made != nil && done.Made.Summary != nil {
		out.Summary = *done.Made.Summary
	}
	return out, nil
}

// answersEqual reports whether a compaction that found nothing to do answers with equal counts instead of an error, as
// Letta does. Letta returns an error if no smaller view was found, and for an empty conversation that is not the
// default one.
func answersEqual(c recall.Conversation, n plan.Nothing) bool {
	empty := n.Goal == 0 && n.Messages == 0 && !n.Summarized
	return !n.Stuck && (c.IsDefault || !empty)
}

func (s *Server) listCompactions(ctx context.Context, input *struct {
	rest.OfAgent
	rest.Paging
	Conversation rest.ConversationID `query:"conversation_id" doc:"Only those of this one."`
}) ([]store.Compaction, error) {
	conversation, err := input.Conversation.OfAgent(string(input.AgentID))
	if err != nil {
		return nil, err
	}
	list, err := s.Agents.Compaction.Compactions(ctx, rest.Org(ctx), string(input.AgentID), conversation,
		input.Page(50, rest.NewestFirst))
	return append([]store.Compaction{}, list...), err
}

// OfCompaction holds the path parameters of operations on a compaction.
type OfCompaction struct {
	rest.OfAgent
	CompactionID rest.CompactionID `path:"compaction_id"`
}

func (s *Server) compactionOf(ctx context.Context, input OfCompaction) (store.Compaction, error) {
	k, err := s.Agents.Compaction.Compaction(ctx, rest.Org(ctx), string(input.CompactionID))
	if err == nil && k.AgentID != string(input.AgentID) {
		err = db.NotFound("Compaction with ID %s not found", input.CompactionID)
	}
	return k, err
}

func (s *Server) getCompaction(ctx context.Context, input *OfCompaction) (store.Compaction, error) {
	return s.compactionOf(ctx, *input)
}

func (s *Server) revertCompaction(ctx context.Context, input *OfCompaction) (store.Compaction, error) {
	k, err := s.compactionOf(ctx, *input)
	if err != nil {
		return k, err
	}
	return s.Agents.Revert(ctx, rest.Org(ctx), k)
}
