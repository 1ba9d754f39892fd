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
		"write_memory_file: Write a file of a tree. It is created if it is not there. With expected_sha256 or "+
			"expected_version, only if the file has that text or version still; else a 409 with the file. A text that the "+
			"file has already changes nothing.",
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
		"write_memory_files: Write several files of a tree, all of them or none. With expected_sha256 and "+
			"expected_version as for one file; an empty hash expects that there is no file.", s.writeMemoryFiles, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/memory-trees/{tree_id}/search",
		"search_memory_files: Search the files of a tree by words, and by meaning where an embedding model answers. The "+
			"best file first, with its best lines.",
		s.searchMemory, rest.Own)
}

// MemoryFilePath names a file or a directory of a tree by its path.
type MemoryFilePath struct {
	OfTree
	Path string `query:"path" required:"true" doc:"Such as /memories/notes.md."`
}

// MemoryFileName names a file of a tree by its path or by its id.
type MemoryFileName struct {
	OfTree
	Path   string `query:"path" doc:"Of a file that is not deleted."`
	FileID string `query:"memory_file_id" doc:"Instead of the path; also of a deleted file."`
}

func (m MemoryFileName) of() memoryfile.Of { return memoryfile.Of{Path: m.Path, ID: m.FileID} }

func (s *Server) listMemoryFiles(ctx context.Context, input *struct {
	OfTree
	Path string `query:"path" default:"/memories" doc:"Of a directory: only what is in it, at any depth."`
	letta.HeldAt
}) ([]letta.MemoryEntry, error) {
	asOf, err := input.Held(nil)
	if err != nil {
		return nil, err
	}
	list, err := s.MemoryFiles.List(ctx, rest.Org(ctx), string(input.TreeID), input.Path, asOf)
	return rest.Each(list, letta.MemoryEntryOf), err
}

func (s *Server) getMemoryFile(ctx context.Context, input *MemoryFilePath) (letta.MemoryFile, error) {
	f, err := s.MemoryFiles.File(ctx, rest.Org(ctx), string(input.TreeID), input.Path)
	return letta.MemoryFile{File: f}, err
}

// withFile adds the stored file to the error of a change that expected another state of the file.
func withFile(c memoryfile.Changed, err error) (letta.ChangedMemoryFile, error) {
	if mismatch, ok := errors.AsType[*memoryfile.MismatchError](err); ok {
		err = rest.Conflict(mismatch.Error(), mismatch.Current)
	}
	if superseded, ok := errors.AsType[*memoryfile.SupersededError](err); ok {
		err = rest.Conflict(superseded.Error(), superseded.Current)
	}
	return letta.ChangedMemoryFile{File: c.File, Notes: rest.Each(c.Notes, func(note string) string { return note })}, err
}

func (s *Server) writeMemoryFile(ctx context.Context, input *struct {
	OfTree
	Body letta.WriteMemoryFile
}) (letta.ChangedMemoryFile, error) {
	f, dates, err := input.Body.New()
	if err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.WriteDated(ctx, input.at(ctx), f, dates))
}

func (s *Server) updateMemoryFile(ctx context.Context, input *struct {
	OfTree
	Body letta.UpdateMemoryFile
}) (letta.ChangedMemoryFile, error) {
	dates, err := input.Body.Dates()
	if err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.Date(ctx, input.at(ctx), input.Body.Path, dates))
}

func (s *Server) deleteMemoryFile(ctx context.Context, input *struct {
	MemoryFilePath
	ExpectedSHA256 string `query:"expected_sha256" doc:"Of the file's text; a 409 with the file if it has another."`
}) (letta.MemoryPaths, error) {
	deleted, notes, err := s.MemoryFiles.Delete(ctx, input.at(ctx), input.Path, input.ExpectedSHA256)
	_, err = withFile(memoryfile.Changed{}, err)
	return letta.NewMemoryPaths(deleted, notes), err
}

func (s *Server) renameMemoryFile(ctx context.Context, input *struct {
	OfTree
	Body letta.RenameMemoryFile
}) (letta.MemoryPaths, error) {
	renamed, notes, err := s.MemoryFiles.Rename(ctx, input.at(ctx), input.Body.OldPath, input.Body.NewPath)
	return letta.NewMemoryPaths(renamed, notes), err
}

func (s *Server) memoryVersions(ctx context.Context, input *struct {
	MemoryFileName
	BeforeVersion int `query:"before_version" minimum:"1" doc:"Versions before this one."`
	Limit         int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]letta.MemoryVersion, error) {
	list, err := s.MemoryFiles.Versions(ctx, input.at(ctx), input.of(), input.BeforeVersion, input.Limit)
	return rest.Each(list, letta.MemoryVersionOf), err
}

func (s *Server) memoryVersion(ctx context.Context, input *struct {
	MemoryFileName
	Version int `path:"version" minimum:"1"`
}) (letta.MemoryVersion, error) {
	v, err := s.MemoryFiles.Version(ctx, input.at(ctx), input.of(), input.Version)
	return letta.MemoryVersionOf(v), err
}

func (s *Server) memoryDiff(ctx context.Context, input *struct {
	MemoryFileName
	From int `query:"from" minimum:"1" required:"true"`
	To   int `query:"to" minimum:"1" required:"true"`
}) (letta.BlockDiff, error) {
	text, err := s.MemoryFiles.Diff(ctx, input.at(ctx), input.of(), input.From, input.To)
	return letta.BlockDiff{From: input.From, To: input.To, Diff: text}, err
}

func (s *Server) restoreMemoryVersion(ctx context.Context, input *struct {
	OfTree
	Body letta.RestoreMemoryFile
}) (letta.ChangedMemoryFile, error) {
	b := input.Body
	if err := letta.CheckSHA256(b.ExpectedSHA256); err != nil {
		return letta.ChangedMemoryFile{}, err
	}
	return withFile(s.MemoryFiles.Restore(ctx, input.at(ctx), memoryfile.Of{Path: b.Path.Value, ID: b.FileID.Value},
		b.Version, b.ExpectedSHA256.Value))
}

func (s *Server) redactMemoryText(ctx context.Context, input *struct {
	OfTree
	Body letta.RedactMemoryText
}) (letta.MemoryRedaction, error) {
	r, err := s.MemoryFiles.Redact(ctx, input.at(ctx), input.Body.Text)
	return letta.MemoryRedaction{Redaction: r}, err
}

// MemoryManifest is a new manifest for a tree.
type MemoryManifest struct {
	OfTree
	Body memoryfile.Manifest
}

func (s *Server) memoryManifest(ctx context.Context, input *OfTree) (letta.MemoryManifest, error) {
	m, own, err := s.MemoryFiles.Manifest(ctx, rest.Org(ctx), string(input.TreeID))
	return letta.MemoryManifest{Manifest: m, IsDefault: !own}, err
}

func (s *Server) setMemoryManifest(ctx context.Context, input *MemoryManifest) (letta.MemoryManifest, error) {
	if _, err := s.MemoryFiles.SetManifest(ctx, input.at(ctx), input.Body); err != nil {
		return letta.MemoryManifest{}, err
	}
	return s.memoryManifest(ctx, &input.OfTree)
}

func (s *Server) lintMemory(ctx context.Context, input *OfTree) (letta.MemoryLint, error) {
	l, err := s.MemoryFiles.Lint(ctx, rest.Org(ctx), string(input.TreeID))
	return letta.MemoryLint{Lint: l}, err
}

func (s *Server) searchMemory(ctx context.Context, input *struct {
	OfTree
	Query string `query:"query" required:"true" doc:"Words or a question."`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"10"`
	letta.HeldAt
	letta.SearchMode
	letta.Explained
}) ([]letta.MemoryHit, error) {
	asOf, err := input.Held(nil)
	if err != nil {
		return nil, err
	}
	mode, err := s.searchMode(input.Mode)
	if err != nil {
		return nil, err
	}
	r, err := s.MemoryFiles.Search(ctx, rest.Org(ctx), string(input.TreeID),
		memoryfile.Query{Text: input.Query, Held: asOf, Limit: input.Limit, Explain: input.Explain, Weight: input.Weight,
			WordsOnly: mode == recall.ByWords, MeaningOnly: mode == recall.ByMeaning})
	rest.Warn(ctx, r.Sentences()...)
	return rest.Each(r.Hits, func(h memoryfile.Hit) letta.MemoryHit { return letta.MemoryHit{Hit: h} }), err
}

func (s *Server) compressMemory(ctx context.Context, input *struct {
	OfTree
	Body letta.CompressMemory
}) (letta.MemoryProposal, error) {
	p, err := s.Agents.CompressMemory(ctx, input.at(ctx), input.Body.Content.Pointer())
	return letta.MemoryProposal{Proposal: p}, err
}

func (s *Server) writeMemoryFiles(ctx context.Context, input *struct {
	OfTree
	Body letta.WriteMemoryFiles
}) (letta.MemoryPaths, error) {
	written, notes, err := s.MemoryFiles.WriteAll(ctx, input.at(ctx), input.Body.Files)
	_, err = withFile(memoryfile.Changed{}, err)
	return letta.NewMemoryPaths(rest.Each(written, func(f memoryfile.File) string { return f.Path }), notes), err
}
