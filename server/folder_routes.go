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

// folderPaths returns where folders are, with the options of the operations there. /v1/sources is the older path.
func folderPaths() map[string][]rest.Option {
	return map[string][]rest.Option{"/v1/folders": nil,
		"/v1/sources": {rest.Deprecated, rest.Renamed("folder", "source")}}
}

// folderRoutesAt registers the operations that /v1/folders and the older /v1/sources share. order is that of a folder's
// agents if a caller gives none.
func (s *Server) folderRoutesAt(a *rest.API, base, order string) {
	options := folderPaths()[base]
	byID := base + "/{folder_id}"
	with := func(one rest.Option) []rest.Option { return append([]rest.Option{one}, options...) }

	rest.Post(a.For(rest.Write), base, "create_folder: Create a folder.", s.createFolder, options...)
	rest.Get(a.For(rest.Read), base+"/count", "count_folders: Count folders.", s.countFolders, options...)
	rest.Get(a.For(rest.Read), base+"/metadata",
		"summarize_folders: Sum up what folders hold. Numbers of files and their sizes.",
		s.folderTotals, options...)
	rest.Get(a.For(rest.Read), base+"/name/{folder_name}", "find_folder: Get a folder's id by its name.", s.folderNamed,
		with(rest.Deprecated)...)
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
	rest.Post(a.For(rest.Write), byID+"/reparse",
		"reparse_folder: Parse all files of a folder again. The old texts stay until the new ones are there.",
		s.reparseFolder, with(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/cancel",
		"cancel_folder_file: Stop the work on a file. The file that it was to replace stays.",
		s.cancelFile, with(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/retry",
		"retry_folder_file: Work again on a file that failed. It goes on where it stopped.", s.retryFile, with(rest.Own)...)
	rest.Post(a.For(rest.Write), byID+"/files/{file_id}/reparse",
		"reparse_folder_file: Parse a file again. The old text stays until the new one is there.",
		s.reparseFile, with(rest.Own)...)
	rest.Delete(a.For(rest.Write), byID+"/{file_id}",
		"delete_folder_file: Delete a file.", s.deleteFile, with(rest.NoContent)...)
}

func (s *Server) createFolder(ctx context.Context, in *struct{ Body letta.CreateFolder }) (letta.Source, error) {
	b := in.Body
	f, err := s.Files.CreateFolder(ctx, rest.Org(ctx), files.NewFolder{Name: b.Name, Description: b.Description.Pointer(),
		Instructions: b.Instructions.Pointer(), Metadata: json.RawMessage(b.Metadata.Value),
		ChunkTokens: b.ChunkTokens.Value})
	return letta.SourceOf(f), err
}

func (s *Server) getFolder(ctx context.Context, in *rest.OfFolder) (letta.Source, error) {
	f, err := s.Files.Folder(ctx, rest.Org(ctx), string(in.FolderID))
	return letta.SourceOf(f), err
}

func (s *Server) folderNamed(ctx context.Context, in *struct {
	Name string `path:"folder_name"`
}) (string, error) {
	f, err := s.Files.FolderNamed(ctx, rest.Org(ctx), in.Name)
	return f.ID, err
}

type folderList struct {
	letta.FolderFilter
	rest.Paging
}

// listFolders lists folders, at most limit of them if a caller gives no limit.
func (s *Server) listFolders(limit int) rest.Handler[folderList, []letta.Source] {
	return func(ctx context.Context, in *folderList) ([]letta.Source, error) {
		folders, err := s.Files.Folders(ctx, rest.Org(ctx), in.Name, in.Page(limit, rest.OldestFirst))
		return rest.Each(folders, letta.SourceOf), err
	}
}

func (s *Server) countFolders(ctx context.Context, _ *struct{}) (int, error) {
	return s.Files.CountFolders(ctx, rest.Org(ctx))
}

func (s *Server) updateFolder(ctx context.Context, in *struct {
	rest.OfFolder
	Body letta.UpdateFolder
}) (letta.Source, error) {
	u := files.FolderUpdate{Name: in.Body.Name.Pointer(), Description: in.Body.Description.Pointer(),
		Instructions: in.Body.Instructions.Pointer(), Metadata: json.RawMessage(in.Body.Metadata.Value)}
	f, err := s.Files.UpdateFolder(ctx, rest.Org(ctx), string(in.FolderID), u)
	return letta.SourceOf(f), err
}

func (s *Server) deleteFolder(ctx context.Context, in *rest.OfFolder) (rest.Null, error) {
	return rest.Null{}, s.Files.DeleteFolder(ctx, rest.Org(ctx), string(in.FolderID))
}

type inFolder struct {
	rest.OfFolder
	rest.Paging
}

func (s *Server) folderAgents(order string) func(context.Context, *inFolder) ([]string, error) {
	return func(ctx context.Context, in *inFolder) ([]string, error) {
		return s.Files.FolderAgents(ctx, rest.Org(ctx), string(in.FolderID), in.Page(50, order))
	}
}

func (s *Server) folderPassages(ctx context.Context, in *struct {
	rest.OfFolder
	rest.Paging
	FileID rest.FileID `query:"file_id" doc:"Chunks of this file only."`
}) ([]files.Passage, error) {
	return s.Files.Passages(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID), in.Page(100, rest.NewestFirst))
}

func (s *Server) searchFolder(ctx context.Context, in *struct {
	rest.OfFolder
	Query string `query:"query" required:"true" doc:"Words or a question."`
	Limit int    `query:"limit" minimum:"1" maximum:"50" default:"10"`
	letta.SearchMode
	letta.Explained
}) ([]letta.FoundChunk, error) {
	mode, err := s.searchMode(in.Mode)
	if err != nil {
		return nil, err
	}
	r, err := s.Files.SearchFolder(ctx, rest.Org(ctx), string(in.FolderID), files.Query{Text: in.Query, Limit: in.Limit,
		WordsOnly: mode == recall.ByWords, MeaningOnly: mode == recall.ByMeaning, Weight: in.Weight, Explain: in.Explain})
	rest.Warn(ctx, r.Sentences()...)
	found := rest.Each(r.Hits, letta.FoundChunkOf)
	for i := range found {
		found[i].SearchedFor = r.SearchedFor
	}
	return found, err
}

// WithContent asks for the text of a file too.
type WithContent struct {
	Content bool `query:"include_content" doc:"With the parsed text."`
}

func (s *Server) folderFiles(ctx context.Context, in *struct {
	rest.OfFolder
	WithContent
	WithStatus
	rest.Paging
}) ([]files.File, error) {
	of := files.Filter{FolderID: string(in.FolderID), Status: files.Status(in.Status)}
	return s.Files.Files(ctx, rest.Org(ctx), of, in.Content, in.Page(rest.MaxPage, rest.NewestFirst))
}

// WithStatus asks for the files at one stage.
type WithStatus struct {
	Status string `query:"status" enum:"pending,parsing,embedding,completed,error" doc:"Files at this stage only."`
}

func (s *Server) allFiles(ctx context.Context, in *struct {
	WithStatus
	rest.Paging
}) ([]files.File, error) {
	return s.Files.Files(ctx, rest.Org(ctx), files.Filter{Status: files.Status(in.Status)}, false,
		in.Page(100, rest.NewestFirst))
}

// OfFile is the path of a file in its folder.
type OfFile struct {
	rest.OfFolder
	FileID rest.FileID `path:"file_id"`
}

func (s *Server) getFile(ctx context.Context, in *struct {
	OfFile
	WithContent
}) (files.File, error) {
	return s.Files.File(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID), in.Content)
}

func (s *Server) deleteFile(ctx context.Context, in *OfFile) (rest.Null, error) {
	return rest.Null{}, s.Files.DeleteFile(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID))
}

func (s *Server) cancelFile(ctx context.Context, in *OfFile) (files.File, error) {
	return s.Files.Cancel(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID))
}

func (s *Server) retryFile(ctx context.Context, in *OfFile) (files.File, error) {
	return s.Files.Retry(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID))
}

func (s *Server) reparseFile(ctx context.Context, in *OfFile) (files.File, error) {
	return s.Files.Reparse(ctx, rest.Org(ctx), string(in.FolderID), string(in.FileID))
}

func (s *Server) reparseFolder(ctx context.Context, in *rest.OfFolder) (letta.Reparsing, error) {
	n, err := s.Files.ReparseFolder(ctx, rest.Org(ctx), string(in.FolderID))
	return letta.Reparsing{Files: n}, err
}

func (s *Server) folderTotals(ctx context.Context, in *struct {
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
		if !in.Detailed {
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
