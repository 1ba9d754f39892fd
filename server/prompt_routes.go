package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) promptRoutes(a *rest.API) {
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/context",
		"get_context: Get the parts of an agent's context window. With at_seq, the prompt that was in force at that event.",
		s.agentContext, rest.ReadsMore)
	rest.Get(a.For(rest.Tools), "/v1/agents/{agent_id}/prompt",
		"get_prompt: Get the next request to an agent's model. It is what the provider is to be sent; a compaction "+
			"may come first. Without any message in view it is a 409.",
		s.agentPrompt,
		rest.Slow(modelTimeout), rest.Own, rest.ReadsMore, rest.WithUsers)
}

// agentPrompt returns the next request to an agent's model.
func (s *Server) agentPrompt(ctx context.Context, input *struct {
	rest.OfAgent
	Conversation rest.ConversationID `query:"conversation_id" doc:"The default one if absent."`
	Format       string              `query:"format" enum:"openai,anthropic,responses" doc:"Of the model if absent."`
	Pending      string              `query:"pending" enum:"keep,answer" default:"keep" doc:"answer gives them one."`
	Accept       string              `query:"accept" enum:"flush" doc:"Of silent turns, in place of the next prompt."`
	Policy       string              `query:"policy" doc:"What another policy would show: its name or JSON."`
	Recall       string              `query:"recall" doc:"As the agent's setting recall, in JSON, and in its place."`
	AtSeq        int64               `query:"at_seq" minimum:"1" maximum:"9e15" doc:"With a policy: at this event."`
}) (letta.Prompt, error) {
	conversation, err := input.Conversation.OfAgent(string(input.AgentID))
	if err := cmp.Or(err, letta.CheckPolicy(input.Policy)); err != nil {
		return letta.Prompt{}, err
	}
	target := agent.PromptTarget{AgentID: string(input.AgentID), Conversation: conversation,
		Format:        agent.Format(input.Format),
		AnswerPending: input.Pending == "answer"}
	if target.Recall, err = agent.ParseRecall([]byte(input.Recall)); err != nil {
		return letta.Prompt{}, rest.Unprocessable("query.recall", err.Error())
	}
	if input.Policy != "" || input.AtSeq > 0 {
		if input.Accept != "" {
			return letta.Prompt{}, rest.Unprocessable("query.accept", "leave it out with policy and at_seq, which begin nothing")
		}
		policyTarget := agent.PolicyTarget{PromptTarget: target, AtSeq: input.AtSeq}
		var written json.RawMessage
		if input.Policy != "" {
			written = policy.Written(input.Policy)
		} else if stored, err := s.Agents.SentAt(ctx, rest.Org(ctx), target, input.AtSeq); err == nil {
			return letta.PromptOf(stored, nil)
		}
		p, err := letta.PromptOf(s.Agents.PromptUnder(ctx, rest.Org(ctx), policyTarget, written))
		p.Rebuilt = true
		return p, err
	}
	if input.Accept == recall.ForFlush {
		silent, err := s.silentPrompt(ctx, target)
		if err != nil {
			return letta.Prompt{}, err
		}
		if silent != nil {
			return letta.PromptOf(*silent, nil)
		}
	}
	target.NotEmpty = true
	return letta.PromptOf(s.Agents.NextPrompt(ctx, rest.Org(ctx), target))
}

// silentPrompt returns the prompt of a silent turn if one is due; else nil. It also returns nil while a run of the
// server works in the conversation.
func (s *Server) silentPrompt(ctx context.Context, target agent.PromptTarget) (*agent.StoredPrompt, error) {
	owner, err := s.Agents.Agent(ctx, rest.Org(ctx), target.AgentID)
	if err != nil {
		return nil, err
	}
	o, err := s.Loop.NewClientLoop(ctx, rest.Org(ctx), owner, target.Conversation)
	if err != nil {
		return nil, err
	}
	if err := s.Loop.RefuseBusy(ctx, rest.Org(ctx), o.Conversation); err != nil {
		if errors.Is(err, db.ErrConflict) {
			return nil, nil
		}
		return nil, err
	}
	return o.NextFlush(ctx, target)
}

// agentContext returns what an agent's window holds, now or at a position of the log. It counts all messages in the
// model's view, and shows the newest.
func (s *Server) agentContext(ctx context.Context, input *struct {
	rest.OfAgent
	Conversation rest.ConversationID `query:"conversation_id" doc:"The default one if absent."`
	AtSeq        int64               `query:"at_seq" minimum:"1" maximum:"9e15" doc:"The last prompt up to this event."`
	Policy       string              `query:"policy" doc:"What it would be under another policy: its name or JSON."`
	Window       int                 `query:"window" minimum:"1000" maximum:"100000000" doc:"In another window."`
	Ratio        float64             `query:"ratio" minimum:"0.01" maximum:"1" doc:"With a share of its tokens."`
}) (letta.InContext, error) {
	org, id := rest.Org(ctx), string(input.AgentID)
	conversation, err := input.Conversation.OfAgent(id)
	if err := cmp.Or(err, letta.CheckPolicy(input.Policy)); err != nil {
		return letta.InContext{}, err
	}
	suppose := agent.Supposed{Window: input.Window, Ratio: input.Ratio}
	if input.Policy != "" {
		suppose.Policy = policy.Written(input.Policy)
	}
	supposes := input.Policy != "" || input.Window > 0 || input.Ratio > 0
	switch {
	case input.AtSeq > 0 && supposes:
		return letta.InContext{}, rest.Unprocessable("query.at_seq", "it shows a prompt as it was: leave out policy, window "+
			"and ratio, or give policy and at_seq to GET /v1/agents/{agent_id}/prompt")
	case input.Ratio > 0 && input.Policy != "":
		return letta.InContext{}, rest.Unprocessable("query.ratio", "it is a policy of its own: leave policy out")
	}
	if input.AtSeq > 0 {
		p, err := letta.PromptOf(s.Agents.PromptAt(ctx, org, id, conversation, input.AtSeq))
		return letta.InContext{Value: p}, err
	}
	var o agent.Overview
	var messages []recall.Message
	if supposes {
		target := agent.PromptTarget{AgentID: id, Conversation: conversation}
		o, messages, err = s.Agents.OverviewUnder(ctx, org, target, suppose)
	} else {
		o, messages, err = s.Agents.Overview(ctx, org, id, conversation)
	}
	if err != nil {
		return letta.InContext{}, err
	}
	for _, m := range messages {
		o.Messages = append(o.Messages, letta.InternalMessageOf(m))
	}
	return letta.InContext{Value: o}, nil
}
