package agent

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// shownMessages is how many messages an overview shows, the newest.
const shownMessages = recall.MaxWindow

// Overview tells what fills an agent's window in a conversation (the default one if it is empty), counted on what its model would be sent
// now. The messages are left to the caller to show: the system prompt that is in force in the conversation, and the newest of the others.
func (s *Store) Overview(ctx context.Context, org db.Org, agentID, conversation string) (Overview, []recall.Message, error) {
	p, err := s.Assemble(ctx, org, agentID, conversation, "")
	if err != nil {
		return Overview{}, nil, err
	}
	total, err := s.Recall.CountMessages(ctx, org, agentID)
	if err != nil {
		return Overview{}, nil, err
	}
	passages, err := s.Archival.CountPassages(ctx, org, agentID)
	if err != nil {
		return Overview{}, nil, err
	}
	t := p.Tokens
	o := Overview{WindowMax: p.Agent.Window(), WindowCurrent: t.Total, NumMessages: 1 + len(p.Messages) + p.unread.Count,
		NumArchivalMemory: passages, NumRecallMemory: total,
		SystemPrompt: p.system.system, TokensSystem: t.System, CoreMemory: p.system.blocks, TokensCoreMemory: t.Blocks,
		TokensToolRules: t.Rules, ToolRules: given(p.system.rules), TokensDirectories: t.Directories, Directories: given(p.system.directories),
		External: p.system.metadata, TokensExternal: t.Metadata,
		TokensFunctions: t.Tools, FunctionsDefinitions: []any{}, SummaryMemory: given(p.summary), TokensSummaryMemory: t.Summary,
		TokensMessages: t.Messages, Messages: []any{}}
	for _, f := range toolsIn(OpenAI, p.definitions) {
		o.FunctionsDefinitions = append(o.FunctionsDefinitions, f)
	}
	return o, slices.Concat([]recall.Message{p.inForce}, p.Messages[max(0, len(p.Messages)-shownMessages):]), nil
}

// given is a text, nil where there is none.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
