package server

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) openFileRoutes(a *rest.API) {
	rest.Get(a, "/v1/agents/{agent_id}/folders", "List an agent's folders", s.agentFolders)
	rest.Patch(a, "/v1/agents/{agent_id}/folders/attach/{folder_id}", "Attach a folder to an agent", s.attachFolder)
	rest.Patch(a, "/v1/agents/{agent_id}/folders/detach/{folder_id}", "Detach a folder from an agent", s.detachFolder)
	rest.Get(a, "/v1/agents/{agent_id}/sources", "List an agent's folders", s.agentFolders, rest.Deprecated)
	rest.Patch(a, "/v1/agents/{agent_id}/sources/attach/{folder_id}", "Attach a folder to an agent", s.attachSource, rest.Deprecated)
	rest.Patch(a, "/v1/agents/{agent_id}/sources/detach/{folder_id}", "Detach a folder from an agent", s.detachSource, rest.Deprecated)
	rest.Get(a, "/v1/agents/{agent_id}/files", "List the files of an agent's folders", s.agentFiles)
	rest.Patch(a, "/v1/agents/{agent_id}/files/close-all", "Close all of an agent's open files", s.closeAllFiles)
	rest.Patch(a, "/v1/agents/{agent_id}/files/{file_id}/open", "Open a file for an agent", s.openFile)
	rest.Patch(a, "/v1/agents/{agent_id}/files/{file_id}/close", "Close a file for an agent", s.closeFile)
}

// AgentFolder is the path of a folder as an agent has it.
type AgentFolder struct {
	rest.OfAgent
	rest.OfFolder
}

// AgentFile is the path of a file as an agent has it.
type AgentFile struct {
	rest.OfAgent
	FileID rest.FileID `path:"file_id"`
}

func (s *Server) agentFolders(ctx context.Context, in *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Source, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	folders, err := s.Files.AgentFolders(ctx, rest.Org(ctx), string(in.AgentID), in.Page(100, rest.NewestFirst))
	return letta.SourcesOf(folders), err
}

func (s *Server) attachFolder(ctx context.Context, in *AgentFolder) (rest.Null, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return rest.Null{}, err
	}
	return rest.Null{}, s.Files.Attach(ctx, rest.Org(ctx), a.ID, string(in.FolderID), a.Limits())
}

func (s *Server) detachFolder(ctx context.Context, in *AgentFolder) (rest.Null, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return rest.Null{}, err
	}
	return rest.Null{}, s.Files.Detach(ctx, rest.Org(ctx), string(in.AgentID), string(in.FolderID))
}

func (s *Server) attachSource(ctx context.Context, in *AgentFolder) (letta.AgentState, error) {
	if _, err := s.attachFolder(ctx, in); err != nil {
		return letta.AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}

func (s *Server) detachSource(ctx context.Context, in *AgentFolder) (letta.AgentState, error) {
	if _, err := s.detachFolder(ctx, in); err != nil {
		return letta.AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}

func (s *Server) agentFiles(ctx context.Context, in *struct {
	rest.OfAgent
	rest.Paging
	IsOpen rest.Opt[bool] `query:"is_open" doc:"Only the open files, or only the others."`
	Cursor string         `query:"cursor" deprecated:"true"`
}) (letta.AgentFiles, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return letta.AgentFiles{}, err
	}
	page := in.Page(100, rest.NewestFirst)
	if page.After == "" {
		page.After = in.Cursor
	}
	list, more, err := s.Files.AgentFiles(ctx, rest.Org(ctx), a.ID,
		files.AgentFilesQuery{Limits: a.Limits(), Open: in.IsOpen.Pointer(), Page: page})
	answer := letta.AgentFiles{Files: list, HasMore: more}
	if more && len(list) > 0 {
		answer.NextCursor = &list[len(list)-1].ID
	}
	return answer, err
}

func (s *Server) openFile(ctx context.Context, in *AgentFile) ([]string, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return nil, err
	}
	closed, err := s.Files.OpenWhole(ctx, rest.Org(ctx), a.ID, string(in.FileID), a.Limits())
	return append([]string{}, closed...), err
}

func (s *Server) closeFile(ctx context.Context, in *AgentFile) (letta.Message, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return letta.Message{}, err
	}
	err := s.Files.CloseFile(ctx, rest.Org(ctx), string(in.AgentID), string(in.FileID))
	return letta.Message{Message: fmt.Sprintf("File id=%s successfully closed", in.FileID)}, err
}

func (s *Server) closeAllFiles(ctx context.Context, in *rest.OfAgent) ([]string, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	closed, err := s.Files.CloseAll(ctx, rest.Org(ctx), string(in.AgentID))
	return append([]string{}, closed...), err
}
