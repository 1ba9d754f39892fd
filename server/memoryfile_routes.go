package server

import (
	"context"
	"errors"

	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) memoryFileRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/files",
		"list_memory_files: List the files of a tree. Sorted by path, without their texts.", s.listMemoryFiles, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/file", "get_memory_file: Get a file of a tree with its text.",
		s.getMemoryFile, rest.Own)
	rest.Put(a.For(rest.Write), "/v1/memory-trees/{tree_id}/file",
		"write_memory_file: Write a file of a tree. It is created if it is not there. With expected_sha256, only if the "+
			"file has that text still; else a 409 with the file. A text that the file has already changes nothing.",
		s.writeMemoryFile, rest.Own)
	rest.Patch(a.For(rest.Write), "/v1/memory-trees/{tree_id}/file",
		"update_memory_file: Change when a file of a tree holds. Fields that are absent stay; null removes.",
		s.updateMemoryFile, rest.Own)
	rest.Delete(a.For(rest.Write), "/v1/memory-trees/{tree_id}/file",
		"delete_memory_file: Delete a file of a tree, or a directory with all that is in it. Versions stay.",
		s.deleteMemoryFile, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/memory-trees/{tree_id}/rename",
		"rename_memory_file: Rename a file or a directory of a tree. The ids of files stay.", s.renameMemoryFile, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/versions",
		"list_memory_versions: List the versions of a file of a tree. The newest version first.",
		s.memoryVersions, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/versions/{version}",
		"get_memory_version: Get a version of a file of a tree.", s.memoryVersion, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/diff",
		"diff_memory_file: Compare two versions of a file of a tree. The answer has a unified diff.",
		s.memoryDiff, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/memory-trees/{tree_id}/restore",
		"restore_memory_version: Restore a version of a file of a tree. The restored text becomes a new version. A deleted "+
			"file is named by its id.",
		s.restoreMemoryVersion, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/memory-trees/{tree_id}/redact",
		"redact_memory_text: Redact a text in all files of a tree and in all their versions. It cannot be undone.",
		s.redactMemoryText, rest.Own, rest.Exact)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/manifest",
		"get_memory_manifest: Get what belongs in which file of a tree. Without a manifest of its own, the default one.",
		s.memoryManifest, rest.Own)
	rest.Put(a.For(rest.Write), "/v1/memory-trees/{tree_id}/manifest",
		"write_memory_manifest: Write the manifest of a tree. It becomes /memories/MANIFEST.md, which agents only read.",
		s.setMemoryManifest, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/lint",
		"get_memory_lint: Check the state of a tree. It reports what the index breaks, and files that it does not point to.",
		s.lintMemory, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/memory-trees/{tree_id}/compress",
		"compress_memory_index: Propose how a grown index becomes pointers to files of topics. The lines go to the files "+
			"word for word, by the model that writes summaries or, without one, by their headings. Nothing is changed: PUT "+
			"/v1/memory-trees/{tree_id}/files with the proposal's files makes the change.", s.compressMemory, rest.Own)
	rest.Put(a.For(rest.Write), "/v1/memory-trees/{tree_id}/files",
		"write_memory_files: Write several files of a tree, all of them or none. With expected_sha256 as for one file; "+
			"empty expects that there is no file.", s.writeMemoryFiles, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/search",
		"search_memory_files: Search the files of a tree by words, and by meaning where an embedding model answers. The "+
			"best file first, with its best lines.",
		s.searchMemory, rest.Own)
}

// MemoryFilePath names a file or a directory of a tree in the query.
type MemoryFilePath struct {
	OfTree
	Path string `query:"path" required:"true" doc:"Such as /memories/notes.md."`
}

// MemoryFileName names a file of a tree in the query.
type MemoryFileName struct {
	OfTree
	Path   string `query:"path" doc:"Of a file that is not deleted."`
	FileID string `query:"memory_file_id" doc:"Instead of the path; also of a deleted file."`
}

func (m MemoryFileName) of() memoryfile.Of { return memoryfile.Of{Path: m.Path, ID: m.FileID} }

func (s *Server) listMemoryFiles(ctx context.Context, in *struct {
	OfTree
	Path string `query:"path" default:"/memories" doc:"Of a directory: only what is in it, at any depth."`
	letta.HeldAt
}) ([]letta.MemoryEntry, error) {
	held, err := in.Held(nil)
	if err != nil {
		return nil, err
	}
	list, err := s.MemoryFiles.List(ctx, rest.Org(ctx), string(in.TreeID), in.Path, held)
	return rest.Each(list, letta.MemoryEntryOf), err
}

func (s *Server) getMemoryFile(ctx context.Context, in *MemoryFilePath) (letta.MemoryFile, error) {
	f, err := s.MemoryFiles.File(ctx, rest.Org(ctx), string(in.TreeID), in.Path)
	return letta.MemoryFile{File: f}, err
}

// withFile adds the stored file to the error of a change that expected another.
func withFile(c memoryfile.Changed, err error) (letta.ChangedMemoryFile, error) {
	if mismatch, ok := errors.AsType[*memoryfile.MismatchError](err); ok {
		err = rest.Conflict(mismatch.Error(), mismatch.Current)
	}
	if superseded, ok := errors.AsType[*memoryfile.SupersededError](err); ok {
		err = rest.Conflict(superseded.Error(), superseded.Current)
	}
	return letta.ChangedMemoryFile{File: c.File, Notes: rest.Each(c.Notes, func(note string) string { return note })}, err
}

func (s *Server) writeMemoryFile(ctx context.Context, in *struct {
	OfTree
	Body letta.WriteMemoryFile
}) (letta.ChangedMemoryFile, error) {
	f, dates, err := in.Body.New()
	if err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.WriteDated(ctx, in.at(ctx), f, dates))
}

func (s *Server) updateMemoryFile(ctx context.Context, in *struct {
	OfTree
	Body letta.UpdateMemoryFile
}) (letta.ChangedMemoryFile, error) {
	dates, err := in.Body.Dates()
	if err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.Date(ctx, in.at(ctx), in.Body.Path, dates))
}

func (s *Server) deleteMemoryFile(ctx context.Context, in *struct {
	MemoryFilePath
	ExpectedSHA256 string `query:"expected_sha256" doc:"Of the file's text; a 409 with the file if it has another."`
}) (letta.MemoryPaths, error) {
	gone, notes, err := s.MemoryFiles.Delete(ctx, in.at(ctx), in.Path, in.ExpectedSHA256)
	_, err = withFile(memoryfile.Changed{}, err)
	return letta.NewMemoryPaths(gone, notes), err
}

func (s *Server) renameMemoryFile(ctx context.Context, in *struct {
	OfTree
	Body letta.RenameMemoryFile
}) (letta.MemoryPaths, error) {
	renamed, notes, err := s.MemoryFiles.Rename(ctx, in.at(ctx), in.Body.OldPath, in.Body.NewPath)
	return letta.NewMemoryPaths(renamed, notes), err
}

func (s *Server) memoryVersions(ctx context.Context, in *struct {
	MemoryFileName
	BeforeVersion int `query:"before_version" minimum:"1" doc:"Versions before this one."`
	Limit         int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]letta.MemoryVersion, error) {
	list, err := s.MemoryFiles.Versions(ctx, in.at(ctx), in.of(), in.BeforeVersion, in.Limit)
	return rest.Each(list, letta.MemoryVersionOf), err
}

func (s *Server) memoryVersion(ctx context.Context, in *struct {
	MemoryFileName
	Version int `path:"version" minimum:"1"`
}) (letta.MemoryVersion, error) {
	v, err := s.MemoryFiles.Version(ctx, in.at(ctx), in.of(), in.Version)
	return letta.MemoryVersionOf(v), err
}

func (s *Server) memoryDiff(ctx context.Context, in *struct {
	MemoryFileName
	From int `query:"from" minimum:"1" required:"true"`
	To   int `query:"to" minimum:"1" required:"true"`
}) (letta.BlockDiff, error) {
	text, err := s.MemoryFiles.Diff(ctx, in.at(ctx), in.of(), in.From, in.To)
	return letta.BlockDiff{From: in.From, To: in.To, Diff: text}, err
}

func (s *Server) restoreMemoryVersion(ctx context.Context, in *struct {
	OfTree
	Body letta.RestoreMemoryFile
}) (letta.ChangedMemoryFile, error) {
	b := in.Body
	if err := letta.CheckSHA256(b.ExpectedSHA256); err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.Restore(ctx, in.at(ctx), memoryfile.Of{Path: b.Path.Value, ID: b.FileID.Value},
		b.Version, b.ExpectedSHA256.Value))
}

func (s *Server) redactMemoryText(ctx context.Context, in *struct {
	OfTree
	Body letta.RedactMemoryText
}) (letta.MemoryRedaction, error) {
	r, err := s.MemoryFiles.Redact(ctx, in.at(ctx), in.Body.Text)
	return letta.MemoryRedaction{Redaction: r}, err
}

// MemoryManifest is the path of the manifest of a tree, with a manifest.
type MemoryManifest struct {
	OfTree
	Body memoryfile.Manifest
}

func (s *Server) memoryManifest(ctx context.Context, in *OfTree) (letta.MemoryManifest, error) {
	m, own, err := s.MemoryFiles.Manifest(ctx, rest.Org(ctx), string(in.TreeID))
	return letta.MemoryManifest{Manifest: m, IsDefault: !own}, err
}

func (s *Server) setMemoryManifest(ctx context.Context, in *MemoryManifest) (letta.MemoryManifest, error) {
	if _, err := s.MemoryFiles.SetManifest(ctx, in.at(ctx), in.Body); err != nil {
		return letta.MemoryManifest{}, err
	}
	return s.memoryManifest(ctx, &in.OfTree)
}

func (s *Server) lintMemory(ctx context.Context, in *OfTree) (letta.MemoryLint, error) {
	l, err := s.MemoryFiles.Lint(ctx, rest.Org(ctx), string(in.TreeID))
	return letta.MemoryLint{Lint: l}, err
}

func (s *Server) searchMemory(ctx context.Context, in *struct {
	OfTree
	Query string `query:"query" required:"true" doc:"Words or a question."`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"10"`
	letta.HeldAt
	letta.SearchMode
	letta.Explained
}) ([]letta.MemoryHit, error) {
	held, err := in.Held(nil)
	if err != nil {
		return nil, err
	}
	mode, err := s.searchMode(in.Mode)
	if err != nil {
		return nil, err
	}
	r, err := s.MemoryFiles.Search(ctx, rest.Org(ctx), string(in.TreeID),
		memoryfile.Query{Text: in.Query, Held: held, Limit: in.Limit, Explain: in.Explain, Weight: in.Weight,
			WordsOnly: mode == recall.ByWords, MeaningOnly: mode == recall.ByMeaning})
	rest.Warn(ctx, r.Sentences()...)
	return rest.Each(r.Hits, func(h memoryfile.Hit) letta.MemoryHit { return letta.MemoryHit{Hit: h} }), err
}

func (s *Server) compressMemory(ctx context.Context, in *struct {
	OfTree
	Body letta.CompressMemory
}) (letta.MemoryProposal, error) {
	p, err := s.Agents.CompressMemory(ctx, in.at(ctx), in.Body.Content.Pointer())
	return letta.MemoryProposal{Proposal: p}, err
}

func (s *Server) writeMemoryFiles(ctx context.Context, in *struct {
	OfTree
	Body letta.WriteMemoryFiles
}) (letta.MemoryPaths, error) {
	written, notes, err := s.MemoryFiles.WriteAll(ctx, in.at(ctx), in.Body.Files)
	_, err = withFile(memoryfile.Changed{}, err)
	return letta.NewMemoryPaths(rest.Each(written, func(f memoryfile.File) string { return f.Path }), notes), err
}
