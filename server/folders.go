package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// twin is where /v1/folders and the older /v1/sources differ.
type twin struct {
	order string // of a folder's agents, where the caller names none
}

// folderRoutes are what folders and sources have in common.
func (s *Server) folderRoutes(a *rest.API, base string, t twin, options ...rest.Option) {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	byID := base + "/{folder_id}"
	without := append([]rest.Option{rest.NoContent}, options...)

	rest.Route(a, post, base, "Create a folder", s.createFolder, options...)
	rest.Route(a, get, base+"/count", "Count folders", s.countFolders, options...)
	rest.Route(a, get, base+"/metadata", "Sum up what folders hold", s.folderTotals, options...)
	rest.Route(a, get, base+"/name/{folder_name}", "Get a folder's id by its name", s.folderNamed, rest.Deprecated)
	rest.Route(a, get, byID, "Get a folder", s.getFolder, options...)
	rest.Route(a, patch, byID, "Change a folder", s.updateFolder, options...)
	rest.Route(a, del, byID, "Delete a folder with its files", s.deleteFolder, options...)
	rest.Route(a, get, byID+"/agents", "List the agents that have a folder", s.folderAgents(t.order), options...)
	rest.Route(a, get, byID+"/passages", "List a folder's chunks", s.folderPassages, options...)
	rest.Route(a, get, byID+"/files", "List a folder's files", s.folderFiles, options...)
	rest.Route(a, get, byID+"/files/{file_id}", "Get a file", s.getFile, options...)
	rest.Route(a, post, byID+"/reparse", "Parse all files of a folder again", s.reparseFolder, options...)
	rest.Route(a, post, byID+"/files/{file_id}/cancel", "Stop the work on a file", s.cancelFile, options...)
	rest.Route(a, post, byID+"/files/{file_id}/retry", "Work again on a file that failed", s.retryFile, options...)
	rest.Route(a, post, byID+"/files/{file_id}/reparse", "Parse a file again", s.reparseFile, options...)
	rest.Route(a, del, byID+"/{file_id}", "Delete a file", s.deleteFile, without...)
}

// CreateFolder is what a folder is created from. Loci embeds with its own model, so a client's choice of one is not heeded.
type CreateFolder struct {
	Name         string                `json:"name"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Instructions rest.Opt[string]      `json:"instructions,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
	ChunkTokens  rest.Opt[int]         `json:"embedding_chunk_size,omitzero" doc:"In tokens; 300 if absent."`
}

// UpdateFolder changes the fields that it has; null leaves one alone.
type UpdateFolder struct {
	Name         rest.Opt[string]      `json:"name,omitzero"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Instructions rest.Opt[string]      `json:"instructions,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
}

func (s *Server) createFolder(ctx context.Context, in *struct{ Body CreateFolder }) (Source, error) {
	b := in.Body
	f, err := s.Files.CreateFolder(ctx, rest.Org(ctx), files.NewFolder{Name: b.Name, Description: b.Description.Pointer(),
		Instructions: b.Instructions.Pointer(), Metadata: json.RawMessage(b.Metadata.Value), ChunkTokens: b.ChunkTokens.Value})
	return sourceOf(f), err
}

func (s *Server) getFolder(ctx context.Context, in *rest.OfFolder) (Source, error) {
	f, err := s.Files.Folder(ctx, rest.Org(ctx), string(in.FolderID))
	return sourceOf(f), err
}

func (s *Server) folderNamed(ctx context.Context, in *struct {
	Name string `path:"folder_name"`
}) (string, error) {
	f, err := s.Files.FolderNamed(ctx, rest.Org(ctx), in.Name)
	return f.ID, err
}

// FolderFilter narrows a list of folders.
type FolderFilter struct {
	Name string `query:"name" doc:"Part of the name, in any case."`
}

func (s *Server) listFolders(ctx context.Context, in *struct {
	FolderFilter
	rest.Paging
}) ([]Source, error) {
	folders, err := s.Files.Folders(ctx, rest.Org(ctx), in.Name, in.Page(50, rest.OldestFirst))
	return sourcesOf(folders), err
}

func (s *Server) listSources(ctx context.Context, _ *struct{}) ([]Source, error) {
	folders, err := s.Files.Folders(ctx, rest.Org(ctx), "", db.Page{Limit: rest.MaxPage, Ascending: true})
	return sourcesOf(folders), err
}

func (s *Server) countFolders(ctx context.Context, _ *struct{}) (int, error) {
	return s.Files.CountFolders(ctx, rest.Org(ctx))
}

func (s *Server) updateFolder(ctx context.Context, in *struct {
	rest.OfFolder
	Body UpdateFolder
}) (Source, error) {
	f, err := s.Files.UpdateFolder(ctx, rest.Org(ctx), string(in.FolderID), files.FolderUpdate{Name: in.Body.Name.Pointer(),
		Description: in.Body.Description.Pointer(), Instructions: in.Body.Instructions.Pointer(), Metadata: json.RawMessage(in.Body.Metadata.Value)})
	return sourceOf(f), err
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

// WithContent says whether a file's text is wanted too.
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

// Reparsing is what follows of a request to parse a folder again.
type Reparsing struct {
	Files int `json:"file_count" doc:"Files of the folder; those that are being parsed already are left alone."`
}

func (s *Server) reparseFolder(ctx context.Context, in *rest.OfFolder) (Reparsing, error) {
	n, err := s.Files.ReparseFolder(ctx, rest.Org(ctx), string(in.FolderID))
	return Reparsing{Files: n}, err
}

// Totals sum up what an organization's folders hold.
type Totals struct {
	Folders   int           `json:"total_sources"`
	Files     int           `json:"total_files"`
	SizeBytes int64         `json:"total_size"`
	PerFolder []FolderTotal `json:"sources"`
}

// FolderTotal sums up a folder. Files has at most a thousand, and only if they were asked for.
type FolderTotal struct {
	files.Total
	Listed []FileSize `json:"files"`
}

// FileSize is a file in a sum.
type FileSize struct {
	ID        string `json:"file_id"`
	Name      string `json:"file_name"`
	SizeBytes int64  `json:"file_size"`
}

func (s *Server) folderTotals(ctx context.Context, in *struct {
	Detailed bool `query:"include_detailed_per_source_metadata"`
}) (Totals, error) {
	folders, err := s.Files.Totals(ctx, rest.Org(ctx))
	if err != nil {
		return Totals{}, err
	}
	all := Totals{Folders: len(folders), PerFolder: make([]FolderTotal, len(folders))}
	for i, folder := range folders {
		all.Files += folder.Files
		all.SizeBytes += folder.SizeBytes
		all.PerFolder[i] = FolderTotal{Total: folder, Listed: []FileSize{}}
		if !in.Detailed {
			continue
		}
		if all.PerFolder[i].Listed, err = s.fileSizes(ctx, folder.FolderID); err != nil {
			return Totals{}, err
		}
	}
	return all, nil
}

func (s *Server) fileSizes(ctx context.Context, folderID string) ([]FileSize, error) {
	list, err := s.Files.Files(ctx, rest.Org(ctx), folderID, false, db.Page{Limit: rest.MaxPage, Ascending: true})
	sizes := make([]FileSize, len(list))
	for i, f := range list {
		sizes[i] = FileSize{ID: f.ID, Name: f.Name, SizeBytes: f.SizeBytes}
	}
	return sizes, err
}
