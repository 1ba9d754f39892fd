package agent

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// shownMessages bounds the messages of an overview.
const shownMessages = recall.MaxWindow

// Overview returns what fills an agent's window in a conversation (the default one if it is empty), counted on what its
// model would be sent now. It leaves Messages to the caller and returns them as the log has them: the current system
// prompt, and the newest of the others.
func (s *Store) Overview(ctx context.Context, org db.Org, agentID, conversation string) (Overview, []recall.Message,
	error) {
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
		TokensToolRules: t.Rules, ToolRules: orNil(p.system.rules),
		TokensDirectories: t.Directories, Directories: orNil(p.system.directories), External: p.system.metadata,
		TokensExternal:  t.Metadata,
		TokensFunctions: t.Tools, FunctionsDefinitions: []any{}, SummaryMemory: orNil(p.summary),
		TokensSummaryMemory: t.Summary,
		TokensMessages:      t.Messages, Messages: []any{}}
	for _, f := range toolsIn(OpenAI, p.definitions) {
		o.FunctionsDefinitions = append(o.FunctionsDefinitions, f)
	}
	return o, slices.Concat([]recall.Message{p.logged}, p.Messages[max(0, len(p.Messages)-shownMessages):]), nil
}

// orNil returns a text, nil if it is empty.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
