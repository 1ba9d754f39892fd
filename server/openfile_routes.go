package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) openFileRoutes(a *rest.API) {
	const (
		folders = "/v1/agents/{agent_id}/folders"
		sources = "/v1/agents/{agent_id}/sources"
		opened  = "/v1/agents/{agent_id}/files"
	)
	attach, detach := withAgent(s, s.attachFolder), withAgent(s, s.detachFolder)
	rest.Get(a.For(rest.ReadAgent), folders, "list_agent_folders: List an agent's folders.", withAgent(s, s.agentFolders))
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/skills",
		"list_agent_skills: List an agent's skills. They are the files SKILL.md in its folders of skills. One that no model "+
			"is offered has an error that says why.", withAgent(s, s.agentSkills), rest.Own)
	rest.Patch(a.For(rest.Write), folders+"/attach/{folder_id}",
		"attach_folder: Attach a folder to an agent. Its files can be opened and searched.", thenStateIfOld(s, attach))
	rest.Patch(a.For(rest.Write), folders+"/detach/{folder_id}",
		"detach_folder: Detach a folder from an agent. Its open files close.",
		thenStateIfOld(s, detach))
	rest.Get(a.For(rest.ReadAgent), sources,
		"list_agent_sources: List an agent's folders.", withAgent(s, s.agentFolders), rest.Deprecated)
	rest.Patch(a.For(rest.Write), sources+"/attach/{folder_id}",
		"attach_source: Attach a folder to an agent. Its files can be opened and searched.",
		thenState(s, attach), rest.Deprecated)
	rest.Patch(a.For(rest.Write), sources+"/detach/{folder_id}",
		"detach_source: Detach a folder from an agent. Its open files close.",
		thenState(s, detach), rest.Deprecated)
	rest.Get(a.For(rest.ReadAgent), opened,
		"list_agent_files: List the files of an agent's folders.", withAgent(s, s.agentFiles))
	rest.Patch(a.For(rest.Write), opened+"/close-all",
		"close_agent_files: Close all of an agent's open files. The answer has their names.", withAgent(s, s.closeAllFiles))
	rest.Patch(a.For(rest.Write), opened+"/{file_id}/open",
		"open_agent_file: Open a file for an agent. The answer has the names of files that were closed to make room.",
		withAgent(s, s.openFile))
	rest.Patch(a.For(rest.Write), opened+"/{file_id}/close",
		"close_agent_file: Close a file for an agent.", withAgent(s, s.closeFile))
	rest.Patch(a.For(rest.Write), opened+"/{file_id}/pin",
		"pin_agent_file: Keep an open file open for an agent. It is not closed to make room for others, and shortened after "+
			"them, until it is closed or unpinned. A 409 unless it is open.", withAgent(s, s.pinFile(true)), rest.Own)
	rest.Patch(a.For(rest.Write), opened+"/{file_id}/unpin",
		"unpin_agent_file: Let an open file be closed again to make room for others.", withAgent(s, s.pinFile(false)),
		rest.Own)
}

// AgentFolder holds the path parameters for a folder of an agent.
type AgentFolder struct {
	rest.OfAgent
	letta.Client
	rest.OfFolder
}

// AgentFile holds the path parameters for a file of an agent.
type AgentFile struct {
	rest.OfAgent
	FileID rest.FileID `path:"file_id"`
}

func (s *Server) agentFolders(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Source, error) {
	folders, err := s.Files.AgentFolders(ctx, rest.Org(ctx), files.Of(a.ID), input.Page(100, rest.NewestFirst))
	return rest.Each(folders, letta.SourceOf), err
}

func (s *Server) agentSkills(ctx context.Context, a agent.Agent, _ *rest.OfAgent) ([]files.Skill, error) {
	return s.Agents.Skills(ctx, rest.Org(ctx), a)
}

// AttachedFolder says which folder to attach to an agent.
type AttachedFolder struct {
	AgentFolder
	Opens rest.Opt[bool] `query:"open_on_attach" doc:"Whether its files open by themselves; the agent's if absent."`
}

func (s *Server) attachFolder(ctx context.Context, a agent.Agent, input *AttachedFolder) (rest.Null, error) {
	return rest.Null{}, s.Agents.AttachFolder(ctx, rest.Org(ctx), a, files.Attachment{AgentID: a.ID,
		FolderID: string(input.FolderID), Opens: input.Opens.Pointer(), Limits: a.Limits()})
}

func (s *Server) detachFolder(ctx context.Context, a agent.Agent, input *AgentFolder) (rest.Null, error) {
	return rest.Null{}, s.Files.Detach(ctx, rest.Org(ctx), a.ID, string(input.FolderID))
}

func (s *Server) agentFiles(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	rest.Paging
	IsOpen rest.Opt[bool] `query:"is_open" doc:"Only the open files, or only the others."`
	Cursor string         `query:"cursor" deprecated:"true"`
}) (letta.AgentFiles, error) {
	page := input.Page(100, rest.NewestFirst)
	page.After = cmp.Or(page.After, input.Cursor)
	list, more, err := s.Files.AgentFiles(ctx, rest.Org(ctx), a.ID,
		files.AgentFilesQuery{Limits: a.Limits(), Open: input.IsOpen.Pointer(), Page: page})
	answer := letta.AgentFiles{Files: list, HasMore: more}
	if more && len(list) > 0 {
		answer.NextCursor = &list[len(list)-1].ID
	}
	return answer, err
}

func (s *Server) openFile(ctx context.Context, a agent.Agent, input *AgentFile) ([]string, error) {
	closed, err := s.Files.OpenWhole(ctx, rest.Org(ctx), a.ID, string(input.FileID), a.Limits())
	return append([]string{}, closed...), err
}

func (s *Server) closeFile(ctx context.Context, a agent.Agent, input *AgentFile) (letta.Message, error) {
	err := s.Files.CloseFile(ctx, rest.Org(ctx), a.ID, string(input.FileID))
	return letta.Message{Message: fmt.Sprintf("File id=%s successfully closed", input.FileID)}, err
}

func (s *Server) closeAllFiles(ctx context.Context, a agent.Agent, _ *rest.OfAgent) ([]string, error) {
	closed, err := s.Files.CloseAll(ctx, rest.Org(ctx), files.Of(a.ID))
	return append([]string{}, closed...), err
}

// pinFile returns a handler that pins a file for an agent, or unpins it.
func (s *Server) pinFile(pinned bool) func(context.Context, agent.Agent, *AgentFile) (rest.Null, error) {
	return func(ctx context.Context, a agent.Agent, input *AgentFile) (rest.Null, error) {
		return rest.Null{}, s.Files.Pin(ctx, rest.Org(ctx), a.ID, string(input.FileID), pinned)
	}
}
