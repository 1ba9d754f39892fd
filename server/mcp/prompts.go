package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/agent/handover"
)

var conversationArgument = &sdk.PromptArgument{Name: "conversation_id", Title: "Conversation",
	Description: "Its id; the agent's default conversation if absent."}

var prompts = []*sdk.Prompt{
	{Name: "context", Title: "What the agent should know now",
		Description: "Memory blocks, summary, newest messages and working memory of a conversation, within a budget.",
		Arguments: []*sdk.PromptArgument{{Name: "budget", Title: "Budget", Description: fmt.Sprintf(
			"At most this many tokens, from %d to %d; %d if absent.", minBudget, maxBudget, defaultBudget)},
			conversationArgument}},
	{Name: "handover", Title: "The last hand-over",
		Description: "What the last session that was handed over did, decided, learned and left open."},
	{Name: "recall", Title: "What the memory has about something",
		Description: "The best places of all memories for a question.",
		Arguments: []*sdk.PromptArgument{{Name: "query", Title: "Question", Description: "Words or a question.",
			Required: true}}},
}

func (s *Server) listPrompts(r *sdk.ListPromptsRequest) (*sdk.ListPromptsResult, error) {
	if r.Params != nil && r.Params.Cursor != "" {
		return nil, errCursor
	}
	return &sdk.ListPromptsResult{Prompts: prompts, Cacheable: uncached}, nil
}

// getPrompt builds a prompt for the caller's agent.
func (s *Server) getPrompt(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	i := slices.IndexFunc(prompts, func(p *sdk.Prompt) bool { return p.Name == r.Params.Name })
	if i < 0 {
		return nil, wrong("there is no prompt %.80q; the prompts are context, handover and recall", r.Params.Name)
	}
	for name := range r.Params.Arguments {
		if !slices.ContainsFunc(prompts[i].Arguments, func(a *sdk.PromptArgument) bool { return a.Name == name }) {
			return nil, wrong("the prompt %s has no argument %.80q", prompts[i].Name, name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	make := map[string]func(context.Context, caller, map[string]string) (string, error){"context": s.contextPrompt,
		"handover": s.handoverPrompt, "recall": s.recallPrompt}[prompts[i].Name]
	text, err := make(ctx, callerOf(ctx), r.Params.Arguments)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return &sdk.GetPromptResult{Description: prompts[i].Description, Messages: []*sdk.PromptMessage{{Role: "user",
		Content: &sdk.TextContent{Text: text}}}}, nil
}

// handoverPrompt shows the last finished hand-over.
func (s *Server) handoverPrompt(ctx context.Context, c caller, _ map[string]string) (string, error) {
	list, err := s.Handovers.Handovers(ctx, c.Org, c.AgentID, lookedAt)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(h handover.Handover) bool { return len(h.Updates) > 0 })
	if i < 0 {
		return "No session was handed over yet.", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The session %s was handed over at %s.\n", list[i].ConversationID,
		list[i].CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
	for _, section := range []string{handover.SectionDone, handover.SectionDecided, handover.SectionLearned,
		handover.SectionOpen, handover.SectionNext, handover.SectionEntity} {
		title := "\n# " + strings.ToUpper(section[:1]) + section[1:] + "\n"
		for _, u := range list[i].Updates {
			if u.Section == section && u.Status != handover.Rejected && u.Status != handover.Refused {
				b.WriteString(title + "- " + u.Text + "\n")
				title = ""
			}
		}
	}
	return b.String(), nil
}

// lookedAt is how many of the latest hand-overs are searched for one with updates.
const lookedAt = 20

// recallPrompt shows the results of the tool search_memory.
func (s *Server) recallPrompt(ctx context.Context, c caller, args map[string]string) (string, error) {
	a, err := s.agentOf(ctx, c)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(args["query"]) == "" {
		return "", wrong("the prompt recall needs the argument query: words or a question")
	}
	raw, err := json.Marshal(map[string]string{"query": args["query"]})
	if err != nil {
		return "", err
	}
	found, err := s.Tools.Run(ctx, toolCaller(c, a), "search_memory", raw)
	if err == nil && found.IsError {
		err = wrong("%s", found.Text)
	}
	return found.Text, err
}
