package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) folderRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/folders", "list_folders: List folders.", s.listFolders(50))
	rest.Get(a.For(rest.Read), "/v1/sources",
		"list_sources: List folders. Up to 1,000 if limit is absent: older clients ask for all.",
		s.listFolders(rest.MaxPage), rest.Deprecated)
	rest.Get(a.For(rest.Read), "/v1/files",
		"list_files: List the files of all folders. With status, those at one stage, as the files that failed.",
		s.allFiles, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/folders/{folder_id}/search",
		"search_folder: Search a folder's files. By meaning and by words.", s.searchFolder, rest.Own)
	s.folderRoutesAt(a, "/v1/folders", rest.NewestFirst)
	s.folderRoutesAt(a, "/v1/sources", rest.OldestFirst)
}

// folderPaths maps each base path of folders to the options of its operations. /v1/sources is the older path.
func folderPaths() map[string][]rest.Option {
	return map[string][]rest.Option{"/v1/folders": nil,
		"/v1/sources": {rest.Deprecated, rest.Renamed("folder", "source")}}
}

// folderRoutesAt registers the operations that /v1/folders and /v1/sources share. order is the default order of a
// folder's agents.
func (s *Server) folderRoutesAt(a *rest.API, base, order string) {
	options := folderPaths()[base]
	byID := base + "/{folder_id}"
	plus := func(option rest.Option) []rest.Option { return append([]rest.Option{option}, options...) }

	rest.Post(a.For(rest.Write), base, "create_folder: Create a folder.", s.createFolder, options...)
	rest.Get(a.For(rest.Read), base+"/count", "count_folders: Count folders.", s.countFolders, options...)
	rest.Get(a.For(rest.Read), base+"/metadata",
		"summarize_folders: Sum up what folders hold. Numbers of files and their sizes.",
		s.folderTotals, options...)
	rest.Get(a.For(rest.Read), base+"/name/{folder_name}", "find_folder: Get a folder's id by its name.", s.folderNamed,
		plus(rest.Deprecated)...)
	rest.Get(a.For(rest.Read), byID, "get_folder: Get a folder.", s.getFolder, options...)
	rest.Patch(a.For(rest.Write), byID,
		"update_folder: Change a folder. Fields that are absent stay.", s.updateFolder, options...)
	rest.Delete(a.For(rest.Write), byID, "delete_folder: Delete a folder with its files.", s.deleteFolder, options...)
	rest.Get(a.For(rest.Read), byID+"/agents",
		"list_folder_agents: List the agents that have a folder. The answer has ids.",
		s.folderAgents(order), options...)
	rest.Get(a.For(rest.Read), byID+"/passages",
		"list_folder_passages: List a folder's chunks. The parts of its files that searches find.",
		s.folderPassages, options...)
	rest.Get(a.For(rest.Read), byID+"/files", "list_folder_files: List a folder's files.", s.folderFiles, options...)
	rest.Get(a.For(rest.Read), byID+"/files/{file_id}", "get_folder_file: Get a file.", s.getFile, options...)
	rest.Patch(a.For(rest.Write), byID+"/files/{file_id}",
		"update_folder_file: Rename a file, or set its metadata. It keeps its id, its text and its vectors.",
		s.updateFile, plus(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/reparse",
		"reparse_folder: Parse all files of a folder again. The old texts stay until the new ones are there.",
		s.reparseFolder, plus(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/cancel",
		"cancel_folder_file: Stop the work on a file. The file that it was to replace stays.",
		s.cancelFile, plus(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/retry",
		"retry_folder_file: Work again on a file that failed. It goes on where it stopped.", s.retryFile, plus(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/reparse",
		"reparse_folder_file: Parse a file again. The old text stays until the new one is there.",
		s.reparseFile, plus(rest.Own)...)
	rest.Delete(a.For(rest.Write), byID+"/{file_id}",
		"delete_folder_file: Delete a file.", s.deleteFile, plus(rest.NoContent)...)
}

func (s *Server) createFolder(ctx context.Context, input *struct{ Body letta.CreateFolder }) (letta.Source, error) {
	b, owner := input.Body, int64(0)
	if b.UserID.Value != "" || b.UserID.Set && !b.UserID.Null {
		users, err := s.writer(ctx, b.UserID)
		if err != nil {
			return letta.Source{}, err
		}
		owner = users.User()
	}
	f, err := s.Files.CreateFolder(ctx, rest.Org(ctx), files.NewFolder{Name: b.Name, Description: b.Description.Pointer(),
		Instructions: b.Instructions.Pointer(), Metadata: json.RawMessage(b.Metadata.Value),
		Skills: b.Skills.Value, ChunkTokens: b.ChunkTokens.Value, Owner: owner})
	return letta.SourceOf(f), err
}

func (s *Server) getFolder(ctx context.Context, input *rest.OfFolder) (letta.Source, error) {
	f, err := s.Files.Folder(ctx, rest.Org(ctx), string(input.FolderID))
	return letta.SourceOf(f), err
}

func (s *Server) folderNamed(ctx context.Context, input *struct {
	Name string `path:"folder_name"`
}) (string, error) {
	f, err := s.Files.FolderNamed(ctx, rest.Org(ctx), input.Name)
	return f.ID, err
}

type folderList struct {
	letta.FolderFilter
	rest.Paging
}

// listFolders returns a handler that lists folders. limit is the default size of a page.
func (s *Server) listFolders(limit int) rest.Handler[folderList, []letta.Source] {
	return func(ctx context.Context, input *folderList) ([]letta.Source, error) {
		folders, err := s.Files.Folders(ctx, rest.Org(ctx), input.Name, input.Page(limit, rest.OldestFirst))
		return rest.Each(folders, letta.SourceOf), err
	}
}

func (s *Server) countFolders(ctx context.Context, _ *struct{}) (int, error) {
	return s.Files.CountFolders(ctx, rest.Org(ctx))
}

func (s *Server) updateFolder(ctx context.Context, input *struct {
	rest.OfFolder
	Body letta.UpdateFolder
}) (letta.Source, error) {
	u := files.FolderUpdate{Name: input.Body.Name.Pointer(), Description: input.Body.Description.Pointer(),
		Instructions: input.Body.Instructions.Pointer(), Metadata: json.RawMessage(input.Body.Metadata.Value),
		Skills: input.Body.Skills.Pointer()}
	f, err := s.Files.UpdateFolder(ctx, rest.Org(ctx), string(input.FolderID), u)
	return letta.SourceOf(f), err
}

func (s *Server) deleteFolder(ctx context.Context, input *rest.OfFolder) (rest.Null, error) {
	return rest.Null{}, s.Files.DeleteFolder(ctx, rest.Org(ctx), string(input.FolderID))
}

type inFolder struct {
	rest.OfFolder
	rest.Paging
}

func (s *Server) folderAgents(order string) func(context.Context, *inFolder) ([]string, error) {
	return func(ctx context.Context, input *inFolder) ([]string, error) {
		return s.Files.FolderAgents(ctx, rest.Org(ctx), string(input.FolderID), input.Page(50, order))
	}
}

func (s *Server) folderPassages(ctx context.Context, input *struct {
	rest.OfFolder
	rest.Paging
	FileID rest.FileID `query:"file_id" doc:"Chunks of this file only."`
}) ([]files.Passage, error) {
	return s.Files.Passages(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID),
		input.Page(100, rest.NewestFirst))
}

func (s *Server) searchFolder(ctx context.Context, input *struct {
	rest.OfFolder
	Query string `query:"query" required:"true" doc:"Words or a question."`
	Limit int    `query:"limit" minimum:"1" maximum:"50" default:"10"`
	letta.Narrowed
	letta.SearchMode
	letta.Explained
}) ([]letta.FoundChunk, error) {
	mode, err := s.searchMode(input.Mode)
	if err != nil {
		return nil, err
	}
	r, err := s.Files.SearchFolder(ctx, rest.Org(ctx), string(input.FolderID),
		files.Query{Text: input.Query, Limit: input.Limit,
			Narrowing: files.Narrowing{Filter: json.RawMessage(input.Filter)},
			WordsOnly: mode == recall.ByWords, MeaningOnly: mode == recall.ByMeaning, Weight: input.Weight,
			Explain: input.Explain})
	rest.Warn(ctx, r.Sentences()...)
	found := rest.Each(r.Hits, letta.FoundChunkOf)
	for i := range found {
		found[i].SearchedFor = r.SearchedFor
	}
	return found, err
}

// WithContent is the query parameter that asks for the texts of files.
type WithContent struct {
	Content bool `query:"include_content" doc:"With the parsed text."`
}

func (s *Server) folderFiles(ctx context.Context, input *struct {
	rest.OfFolder
	WithContent
	WithStatus
	rest.Paging
}) ([]files.File, error) {
	filter := files.Filter{FolderID: string(input.FolderID), Status: files.Status(input.Status)}
	return s.Files.Files(ctx, rest.Org(ctx), filter, input.Content, input.Page(rest.MaxPage, rest.NewestFirst))
}

// WithStatus is the query parameter that selects files by stage.
type WithStatus struct {
	Status string `query:"status" enum:"pending,parsing,embedding,completed,error" doc:"Files at this stage only."`
}

func (s *Server) allFiles(ctx context.Context, input *struct {
	WithStatus
	rest.Paging
}) ([]files.File, error) {
	return s.Files.Files(ctx, rest.Org(ctx), files.Filter{Status: files.Status(input.Status)}, false,
		input.Page(100, rest.NewestFirst))
}

// OfFile holds the path parameters of operations on a file of a folder.
type OfFile struct {
	rest.OfFolder
	FileID rest.FileID `path:"file_id"`
}

func (s *Server) getFile(ctx context.Context, input *struct {
	OfFile
	WithContent
}) (files.File, error) {
	return s.Files.File(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID), input.Content)
}

func (s *Server) deleteFile(ctx context.Context, input *OfFile) (rest.Null, error) {
	return rest.Null{}, s.Files.DeleteFile(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID))
}

func (s *Server) updateFile(ctx context.Context, input *struct {
	OfFile
	Body letta.UpdateFile
}) (files.File, error) {
	return s.Files.UpdateFile(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID),
		files.FileUpdate{Name: input.Body.Name.Pointer(), Metadata: json.RawMessage(input.Body.Metadata.Value)})
}

func (s *Server) cancelFile(ctx context.Context, input *OfFile) (files.File, error) {
	return s.Files.Cancel(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID))
}

func (s *Server) retryFile(ctx context.Context, input *OfFile) (files.File, error) {
	return s.Files.Retry(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID))
}

func (s *Server) reparseFile(ctx context.Context, input *OfFile) (files.File, error) {
	return s.Files.Reparse(ctx, rest.Org(ctx), string(input.FolderID), string(input.FileID))
}

func (s *Server) reparseFolder(ctx context.Context, input *rest.OfFolder) (letta.Reparsing, error) {
	n, err := s.Files.ReparseFolder(ctx, rest.Org(ctx), string(input.FolderID))
	return letta.Reparsing{Files: n}, err
}

func (s *Server) folderTotals(ctx context.Context, input *struct {
	Detailed bool `query:"include_detailed_per_source_metadata"`
}) (letta.Totals, error) {
	folders, err := s.Files.Totals(ctx, rest.Org(ctx))
	if err != nil {
		return letta.Totals{}, err
	}
	all := letta.Totals{Folders: len(folders), PerFolder: make([]letta.FolderTotal, len(folders))}
	for i, folder := range folders {
		all.Files += folder.Files
		all.SizeBytes += folder.SizeBytes
		all.PerFolder[i] = letta.FolderTotal{Total: folder, Listed: []letta.FileSize{}}
		if !input.Detailed {
			continue
		}
		if all.PerFolder[i].Listed, err = s.fileSizes(ctx, folder.FolderID); err != nil {
			return letta.Totals{}, err
		}
	}
	return all, nil
}

func (s *Server) fileSizes(ctx context.Context, folderID string) ([]letta.FileSize, error) {
	of, page := files.Filter{FolderID: folderID}, db.Page{Limit: rest.MaxPage, Ascending: true}
	list, err := s.Files.Files(ctx, rest.Org(ctx), of, false, page)
	return rest.Each(list, letta.FileSizeOf), err
}
