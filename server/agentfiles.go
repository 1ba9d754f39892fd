package server

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/files"
)

// AgentFolder is the path of a folder as an agent has it.
type AgentFolder struct {
	OfAgent
	OfFolder
}

// AgentFile is the path of a file as an agent has it.
type AgentFile struct {
	OfAgent
	FileID fileID `path:"file_id"`
}

// AgentFiles is a page of an agent's files.
type AgentFiles struct {
	Files      []files.AgentFile `json:"files"`
	NextCursor *string           `json:"next_cursor"`
	HasMore    bool              `json:"has_more"`
}

func (s *Server) agentFolders(ctx context.Context, in *struct {
	OfAgent
	Paging
}) ([]Source, error) {
	if _, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	folders, err := s.Files.AgentFolders(ctx, orgOf(ctx), string(in.AgentID), in.page(100, newestFirst))
	return sourcesOf(folders), err
}

func (s *Server) attachFolder(ctx context.Context, in *AgentFolder) (null, error) {
	a, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID))
	if err != nil {
		return null{}, err
	}
	return null{}, s.Files.Attach(ctx, orgOf(ctx), a.ID, string(in.FolderID), a.Limits())
}

func (s *Server) detachFolder(ctx context.Context, in *AgentFolder) (null, error) {
	if _, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID)); err != nil {
		return null{}, err
	}
	return null{}, s.Files.Detach(ctx, orgOf(ctx), string(in.AgentID), string(in.FolderID))
}

func (s *Server) attachSource(ctx context.Context, in *AgentFolder) (AgentState, error) {
	if _, err := s.attachFolder(ctx, in); err != nil {
		return AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}

func (s *Server) detachSource(ctx context.Context, in *AgentFolder) (AgentState, error) {
	if _, err := s.detachFolder(ctx, in); err != nil {
		return AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}

func (s *Server) agentFiles(ctx context.Context, in *struct {
	OfAgent
	Paging
	IsOpen Opt[bool] `query:"is_open" doc:"Only the open files, or only the others."`
	Cursor string    `query:"cursor" deprecated:"true"`
}) (AgentFiles, error) {
	a, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID))
	if err != nil {
		return AgentFiles{}, err
	}
	page := in.page(100, newestFirst)
	if page.After == "" {
		page.After = in.Cursor
	}
	list, more, err := s.Files.AgentFiles(ctx, orgOf(ctx), a.ID, a.Limits(), in.IsOpen.Pointer(), page)
	answer := AgentFiles{Files: list, HasMore: more}
	if more && len(list) > 0 {
		answer.NextCursor = &list[len(list)-1].ID
	}
	return answer, err
}

func (s *Server) openFile(ctx context.Context, in *AgentFile) ([]string, error) {
	a, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID))
	if err != nil {
		return nil, err
	}
	closed, err := s.Files.OpenWhole(ctx, orgOf(ctx), a.ID, string(in.FileID), a.Limits())
	return append([]string{}, closed...), err
}

func (s *Server) closeFile(ctx context.Context, in *AgentFile) (Message, error) {
	if _, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID)); err != nil {
		return Message{}, err
	}
	err := s.Files.CloseFile(ctx, orgOf(ctx), string(in.AgentID), string(in.FileID))
	return Message{fmt.Sprintf("File id=%s successfully closed", in.FileID)}, err
}

func (s *Server) closeAllFiles(ctx context.Context, in *OfAgent) ([]string, error) {
	if _, err := s.Agents.Agent(ctx, orgOf(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	closed, err := s.Files.CloseAll(ctx, orgOf(ctx), string(in.AgentID))
	return append([]string{}, closed...), err
}
