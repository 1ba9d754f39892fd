package agent

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/block"
)

// Relations are what belongs to an agent and is kept by the memories.
type Relations struct {
	CoreMemory
	Folders    []files.Folder
	MessageIDs []string               // of the default conversation's messages that the model sees
	Embedding  *files.EmbeddingConfig // nil for an agent that names no embedding model
}

// CoreMemory is what an agent's model always sees besides its instructions.
type CoreMemory struct {
	Blocks     []block.Block
	FileBlocks []FileBlock // the open files; empty where they are not asked for
}

// Relations reads an agent's relations. The texts of its open files are read only withFiles.
func (s *Store) Relations(ctx context.Context, org db.Org, a Agent, withFiles bool) (r Relations, err error) {
	if r.Folders, err = s.Files.AgentFolders(ctx, org, a.ID, db.Page{Ascending: true}); err != nil {
		return r, err
	}
	if r.CoreMemory, err = s.CoreMemory(ctx, org, a, withFiles && len(r.Folders) > 0); err != nil {
		return r, err
	}
	conversation, err := s.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
	if err != nil {
		return r, err
	}
	visible, err := s.Recall.VisibleIDs(ctx, org, conversation)
	r.MessageIDs = visible[conversation.Key]
	if a.Embedding != nil {
		r.Embedding = new(s.Files.Embedding(files.DefaultChunkTokens))
	}
	return r, err
}

// CoreMemory reads an agent's blocks, and withFiles the texts of its open files.
func (s *Store) CoreMemory(ctx context.Context, org db.Org, a Agent, withFiles bool) (m CoreMemory, err error) {
	m.FileBlocks = []FileBlock{}
	if m.Blocks, err = s.Blocks.OfAgent(ctx, org, a.ID); err != nil || !withFiles {
		return m, err
	}
	m.FileBlocks, err = s.FileBlocks(ctx, org, a)
	return m, err
}
