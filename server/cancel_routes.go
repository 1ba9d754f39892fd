package server

import (
	"cmp"
	"context"
	"errors"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) cancelRoutes(a *rest.API) {
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/messages/cancel",
		"cancel_runs: Cancel the run of an agent. That of the default conversation, or those of the ids.", s.cancelRuns)
	rest.Post(a.For(rest.Tools), "/v1/conversations/{conversation_id}/cancel",
		"cancel_conversation: Cancel the run of a conversation.",
		s.cancelConversation, rest.WithUsers)
}

func (s *Server) cancelRuns(ctx context.Context, input *struct {
	rest.OfAgent
	Body letta.CancelRuns
}) (map[string]string, error) {
	if err := input.Body.CheckConversation("default", "POST /v1/conversations/{conversation_id}/cancel"); err != nil {
		return nil, err
	}
	conversation, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(input.AgentID), recall.DefaultConversation)
	if err != nil {
		return nil, err
	}
	if runs := input.Body.RunIDs.Value; len(runs) > 0 {
		return s.cancelNamed(ctx, string(input.AgentID), runs)
	}
	return s.cancel(ctx, conversation)
}

func (s *Server) cancelConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
}) (map[string]string, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return nil, err
	}
	return s.cancel(ctx, c)
}

// cancel cancels the run, or the waiting calls, of a conversation.
func (s *Server) cancel(ctx context.Context, c recall.Conversation) (map[string]string, error) {
	id, err := s.Loop.Cancel(ctx, rest.Org(ctx), c)
	if err != nil || id == "" {
		return nil, cmp.Or(runProblem(err), errNothingToCancel())
	}
	if err := s.awaitEnd(ctx, id); err != nil {
		return nil, err
	}
	return map[string]string{id: loop.Cancelled}, nil
}

// awaitEnd waits for a while until a cancelled run has ended, so that the client's next message meets no run. run may
// also be the id of calls that were denied; then awaitEnd returns at once.
func (s *Server) awaitEnd(ctx context.Context, run string) error {
	_, err := s.Loop.AwaitEnd(ctx, rest.Org(ctx), run)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

func errNothingToCancel() error { return db.Conflict("No active runs found to cancel") }

// cancelNamed cancels runs of an agent. It returns a status for each run: cancelled, or failed if it could not be
// cancelled.
func (s *Server) cancelNamed(ctx context.Context, agentID string, runs []string) (map[string]string, error) {
	became, nothingCancelled := map[string]string{}, true
	for _, id := range runs {
		became[id] = loop.Failed
		r, err := s.Loop.RunByID(ctx, rest.Org(ctx), id)
		if errors.Is(err, db.ErrNotFound) || err == nil && r.AgentID != agentID {
			continue
		}
		if err != nil {
			return nil, err
		}
		cancelled, err := s.Loop.CancelRun(ctx, rest.Org(ctx), r)
		if err != nil {
			return nil, runProblem(err)
		}
		if cancelled {
			if err := s.awaitEnd(ctx, id); err != nil {
				return nil, err
			}
			became[id], nothingCancelled = loop.Cancelled, false
		}
	}
	if nothingCancelled {
		return nil, errNothingToCancel()
	}
	return became, nil
}
