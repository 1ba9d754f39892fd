package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) folderRoutes(a *rest.API) {
	rest.Get(a, "/v1/folders", "List folders", s.listFolders)
	rest.Get(a, "/v1/sources", "List folders", s.listSources, rest.Deprecated)
	s.folderRoutesAt(a, "/v1/folders", rest.NewestFirst)
	s.folderRoutesAt(a, "/v1/sources", rest.OldestFirst, rest.Deprecated)
}

// folderRoutesAt registers the operations that /v1/folders and the older /v1/sources share. order is that of a folder's
// agents if a caller gives none.
func (s *Server) folderRoutesAt(a *rest.API, base, order string, options ...rest.Option) {
	byID := base + "/{folder_id}"
	without := append([]rest.Option{rest.NoContent}, options...)

	rest.Post(a, base, "Create a folder", s.createFolder, options...)
	rest.Get(a, base+"/count", "Count folders", s.countFolders, options...)
	rest.Get(a, base+"/metadata", "Sum up what folders hold", s.folderTotals, options...)
	rest.Get(a, base+"/name/{folder_name}", "Get a folder's id by its name", s.folderNamed, rest.Deprecated)
	rest.Get(a, byID, "Get a folder", s.getFolder, options...)
	rest.Patch(a, byID, "Change a folder", s.updateFolder, options...)
	rest.Delete(a, byID, "Delete a folder with its files", s.deleteFolder, options...)
	rest.Get(a, byID+"/agents", "List the agents that have a folder", s.folderAgents(order), options...)
	rest.Get(a, byID+"/passages", "List a folder's chunks", s.folderPassages, options...)
	rest.Get(a, byID+"/files", "List a folder's files", s.folderFiles, options...)
	rest.Get(a, byID+"/files/{file_id}", "Get a file", s.getFile, options...)
	rest.Post(a, byID+"/reparse", "Parse all files of a folder again", s.reparseFolder, options...)
	rest.Post(a, byID+"/files/{file_id}/cancel", "Stop the work on a file", s.cancelFile, options...)
	rest.Post(a, byID+"/files/{file_id}/retry", "Work again on a file that failed", s.retryFile, options...)
	rest.Post(a, byID+"/files/{file_id}/reparse", "Parse a file again", s.reparseFile, options...)
	rest.Delete(a, byID+"/{file_id}", "Delete a file", s.deleteFile, without...)
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

func (s *Server) listFolders(ctx context.Context, in *struct {
	letta.FolderFilter
	rest.Paging
}) ([]letta.Source, error) {
	folders, err := s.Files.Folders(ctx, rest.Org(ctx), in.Name, in.Page(50, rest.OldestFirst))
	return rest.Each(folders, letta.SourceOf), err
}

func (s *Server) listSources(ctx context.Context, _ *struct{}) ([]letta.Source, error) {
	folders, err := s.Files.Folders(ctx, rest.Org(ctx), "", db.Page{Limit: rest.MaxPage, Ascending: true})
	return rest.Each(folders, letta.SourceOf), err
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

func (s *Server) folderPassages(ctx context.Context, in *inFolder) ([]files.Passage, error) {
	return s.Files.Passages(ctx, rest.Org(ctx), string(in.FolderID), in.Page(100, rest.NewestFirst))
}

// WithContent asks for the text of a file too.
type WithContent struct {
	Content bool `query:"include_content" doc:"With the parsed text."`
}

func (s *Server) folderFiles(ctx context.Context, in *struct {
	rest.OfFolder
	WithContent
	rest.Paging
}) ([]files.File, error) {
	return s.Files.Files(ctx, rest.Org(ctx), string(in.FolderID), in.Content, in.Page(rest.MaxPage, rest.NewestFirst))
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
	list, err := s.Files.Files(ctx, rest.Org(ctx), folderID, false, db.Page{Limit: rest.MaxPage, Ascending: true})
	return rest.Each(list, letta.FileSizeOf), err
}
