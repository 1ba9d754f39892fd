package server

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/letta"
)

// state is an agent with all its relations; withFiles fills the texts of its open files too.
func (s *Server) state(ctx context.Context, org db.Org, a agent.Agent, withFiles bool) (letta.AgentState, error) {
	folders, err := s.Files.AgentFolders(ctx, org, a.ID, db.Page{Ascending: true})
	if err != nil {
		return letta.AgentState{}, err
	}
	memory, err := s.memory(ctx, org, a, withFiles && len(folders) > 0)
	if err != nil {
		return letta.AgentState{}, err
	}
	conversation, err := s.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
	if err != nil {
		return letta.AgentState{}, err
	}
	visible, err := s.Recall.VisibleIDs(ctx, org, conversation)
	if err != nil {
		return letta.AgentState{}, err
	}
	r := letta.Relations{Memory: memory, Tools: s.toolsOf(len(folders) > 0), Folders: folders, MessageIDs: visible[conversation.Key]}
	if a.Embedding != nil {
		config := s.Files.Embedding(files.DefaultChunkTokens)
		r.Embedding = &config
	}
	return letta.StateOf(a, r), nil
}

func (s *Server) memory(ctx context.Context, org db.Org, a agent.Agent, withFiles bool) (letta.CoreMemory, error) {
	blocks, err := s.Blocks.OfAgent(ctx, org, a.ID)
	m := letta.CoreMemory{Blocks: letta.BlocksOf(blocks), FileBlocks: []agent.FileBlock{}, AgentType: a.Type}
	if err != nil || !withFiles {
		return m, err
	}
	m.FileBlocks, err = s.Agents.FileBlocks(ctx, org, a)
	return m, err
}
