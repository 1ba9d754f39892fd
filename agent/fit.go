package agent

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ResultToFit is a tool's result that a caller wants to show its model.
type ResultToFit struct {
	AgentID      string
	Conversation string // an id or recall.DefaultConversation
	Text         string
	Tool         string          // the tool's name; empty if unknown
	Policy       json.RawMessage // changes the policy of the farther places; nil: the one in force
}

// FittedResult is a tool's result within the bounds of a policy.
type FittedResult struct {
	ID          *string `json:"id" doc:"By which expand and query_result read the whole; null if the text is the whole."`
	Text        string  `json:"text" doc:"To show to the model."`
	Policy      string  `json:"policy" doc:"Its name, or custom."`
	Step        *string `json:"step" doc:"That bounds the result; null if the text is the whole."`
	TotalChars  int     `json:"total_chars" doc:"Of the whole."`
	TotalBytes  int     `json:"total_bytes" doc:"Of the whole."`
	TotalTokens int     `json:"total_tokens" doc:"Of the whole."`
	Tokens      int     `json:"tokens" doc:"Of the text."`
}

// Fit shortens a result by the policy steps that limit new results, and then to the log's own limit. If it shortens the
// result, it stores the whole one. ErrNotFound if the agent or the conversation does not exist; ErrInvalid if the
// result is empty or too long, or the policy is wrong.
func (s *Store) Fit(ctx context.Context, org db.Org, r ResultToFit) (out FittedResult, err error) {
	a, err := s.Agent(ctx, org, r.AgentID)
	if err != nil {
		return out, err
	}
	c, err := s.Recall.Conversation(ctx, org, r.AgentID, r.Conversation)
	if err != nil {
		return out, err
	}
	a = a.in(c)
	layers, err := s.layers(ctx, org, a, r.Policy)
	if err != nil {
		return out, err
	}
	inForce, err := policy.Layered(layers...)
	if err != nil {
		return out, err
	}
	if r.Text, err = s.Recall.CleanedResult(ctx, org, r.Text); err != nil {
		return out, err
	}
	id, err := s.Recall.KeptID(ctx, org, c, r.Text)
	if err != nil {
		return out, err
	}
	out = r.bounded(r.bounds(inForce.Policy), s.inWindowOf(a), id)
	out.Policy = inForce.Name()
	if out.ID != nil {
		err = s.Recall.KeepResult(ctx, org, c, id, r.Text)
	}
	return out, err
}

// bounds returns the policy steps that limit the size of new results. Its last step is the log's own limit: a longer
// result is stored outside the log.
func (r ResultToFit) bounds(p policy.Policy) (enter policy.Policy) {
	for _, step := range p.Steps {
		if policy.Describe(step).Stage == policy.Enter {
			enter.Steps = append(enter.Steps, step)
		}
	}
	enter.Steps = append(enter.Steps, &policy.Offload{MaxResultChars: recall.MostResultChars(r.Tool),
		MaxMessageChars: recall.MaxResultsChars, PreviewBytes: recall.PreviewBytes})
	return enter
}

// inWindowOf returns an empty view of an agent's model.
func (s *Store) inWindowOf(a Agent) clip.View {
	return clip.View{Window: a.AssumedWindow(), Has: a.HasTool,
		Count: func(text string) int { return s.CountTokens(a, text) }}
}

// CountTokens counts the tokens of a text for an agent's model. They are estimated if its vocabulary is unknown.
func (s *Store) CountTokens(a Agent, text string) int { return s.Tokens.Count(a.model(), text) }

// bounded returns the result as the model sees it under this id. The ID is nil if the result is not shortened.
func (r ResultToFit) bounded(by policy.Policy, v clip.View, id string) FittedResult {
	call := recall.Part{Type: recall.ToolCall, CallID: "call", Name: r.Tool, Input: "{}"}
	result := recall.Message{Position: 2, ID: id, Role: recall.Tool,
		Content: []recall.Part{{Type: recall.ToolReturn, CallID: "call", Text: r.Text}}}
	v.Messages = []recall.Message{{Position: 1, Role: recall.Assistant, Content: []recall.Part{call}}, result}
	out := FittedResult{Text: r.Text, TotalChars: utf8.RuneCountInString(r.Text), TotalBytes: len(r.Text),
		TotalTokens: v.PartTokens(result, 0, nil)}
	out.Tokens = out.TotalTokens
	_, edits := by.Prune(v, policy.Moment{})
	for _, e := range edits {
		if e.Position == result.Position {
			out.ID, out.Step, out.Text = &id, &e.Step, v.ShownPart(result, e).Text
			out.Tokens = v.CountText(out.Text)
		}
	}
	return out
}
