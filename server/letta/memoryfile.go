package letta

import (
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/server/rest"
)

// MemoryTree is a tree of memory files.
type MemoryTree struct{ memoryfile.Tree }

// MemoryTreeOf returns a tree in the API's shape.
func MemoryTreeOf(t memoryfile.Tree) MemoryTree { return MemoryTree{t} }

// AgentMemoryTree is an agent's tree of memory files.
type AgentMemoryTree struct{ memoryfile.Attached }

// MemoryEntry is a memory file without its text.
type MemoryEntry struct{ memoryfile.Entry }

// MemoryEntryOf returns a memory file without its text, in the API's shape.
func MemoryEntryOf(e memoryfile.Entry) MemoryEntry { return MemoryEntry{e} }

// MemoryFile is a memory file.
type MemoryFile struct{ memoryfile.File }

// MemoryVersion is a version of a memory file.
type MemoryVersion struct{ memoryfile.Version }

// MemoryVersionOf returns a version of a memory file in the API's shape.
func MemoryVersionOf(v memoryfile.Version) MemoryVersion { return MemoryVersion{v} }

// MemoryRedaction says what a redaction changed.
type MemoryRedaction struct{ memoryfile.Redaction }

// MemoryManifest says which file of a tree holds what.
type MemoryManifest struct {
	memoryfile.Manifest
	IsDefault bool `json:"is_default" doc:"The tree has no manifest of its own."`
}

// MemoryLint lists what breaks the rules in a tree.
type MemoryLint struct{ memoryfile.Lint }

// MemoryHit is a file that a search found.
type MemoryHit struct{ memoryfile.Hit }

// CreateMemoryTree is a request to create a tree of memory files.
type CreateMemoryTree struct {
	Name string `json:"name" doc:"1 to 255 characters." example:"Team notes"`
	MemoryTreeFields
}

// UpdateMemoryTree changes the fields that are present and not null.
type UpdateMemoryTree struct {
	Name rest.Opt[string] `json:"name,omitzero"`
	MemoryTreeFields
}

// MemoryTreeFields are the optional fields of a tree of memory files.
type MemoryTreeFields struct {
	Description rest.Opt[string] `json:"description,omitzero" doc:"At most 1,024 characters."`

	Rules rest.Opt[memoryfile.IndexRules] `json:"rules,omitzero" doc:"Of the index; {} is the usual ones."`
}

// Update returns the change.
func (f MemoryTreeFields) Update() memoryfile.TreeUpdate {
	return memoryfile.TreeUpdate{Description: f.Description.Pointer(), Rules: f.Rules.Pointer()}
}

// Update returns the change.
func (u UpdateMemoryTree) Update() memoryfile.TreeUpdate {
	change := u.MemoryTreeFields.Update()
	change.Name = u.Name.Pointer()
	return change
}

// MemoryResult is the result of a call to the memory-file tool.
type MemoryResult struct {
	Content string `json:"content" doc:"For the model."`
	IsError bool   `json:"is_error"`
}

// WriteMemoryFile is a request to write a memory file.
type WriteMemoryFile struct {
	Path           string           `json:"path" example:"/memories/notes.md"`
	Content        string           `json:"content" doc:"At most 102,400 bytes." example:"- The staging host is s2.\n"`
	ExpectedSHA256 rest.Opt[string] `json:"expected_sha256,omitzero" doc:"Of the file's text; empty: there is none."`

	ExpectedVersion rest.Opt[int] `json:"expected_version,omitzero" minimum:"1" doc:"Of the file, as it was read."`

	NewValidity
	Supersedes rest.Opt[string] `json:"supersedes,omitzero" doc:"Path of a file that ends where this begins."`
}

// New returns the file to write, and the time span in which its content holds. Times without an offset are in UTC.
func (w WriteMemoryFile) New() (f memoryfile.NewFile, d memoryfile.Dates, err error) {
	f, d.Supersedes = memoryfile.NewFile{Path: w.Path, Content: w.Content}, w.Supersedes.Value
	f.Expected, f.ExpectedVersion = w.ExpectedSHA256.Pointer(), w.ExpectedVersion.Pointer()
	d.From, d.Until, err = w.Bounds(nil)
	return f, d, err
}

// UpdateMemoryFile changes the time span in which a memory file holds.
type UpdateMemoryFile struct {
	Path string `json:"path" doc:"Of the file." example:"/memories/notes.md"`
	NewValidity
	SupersededBy rest.Opt[string] `json:"superseded_by,omitzero" doc:"Path of the file of the tree that took its place."`
}

// Dates returns the change. Times without an offset are in UTC.
func (u UpdateMemoryFile) Dates() (d memoryfile.Dates, err error) {
	if u.SupersededBy.Set {
		d.SupersededBy = &u.SupersededBy.Value
	}
	d.From, d.Until, err = u.Bounds(nil)
	return d, err
}

// ChangedMemoryFile is a memory file after a change.
type ChangedMemoryFile struct {
	memoryfile.File
	Notes []string `json:"notes" doc:"What its author should know of the change."`
}

// RenameMemoryFile is a request to rename memory files.
type RenameMemoryFile struct {
	OldPath string `json:"old_path" doc:"Of a file or a directory." example:"/memories/notes.md"`
	NewPath string `json:"new_path" example:"/memories/old/notes.md"`
}

// MemoryPaths are the paths of the memory files that a change touched.
type MemoryPaths struct {
	Paths []string `json:"paths"`
	Notes []string `json:"notes" doc:"What their author should know of the change."`
}

// NewMemoryPaths returns MemoryPaths with lists that are never nil.
func NewMemoryPaths(paths, notes []string) MemoryPaths {
	same := func(s string) string { return s }
	return MemoryPaths{rest.Each(paths, same), rest.Each(notes, same)}
}

// RestoreMemoryFile is a request to restore a version of a memory file.
type RestoreMemoryFile struct {
	Path           rest.Opt[string] `json:"path,omitzero" doc:"Of a file that is there." example:"/memories/notes.md"`
	FileID         rest.Opt[string] `json:"memory_file_id,omitzero" doc:"Instead of the path; also of a deleted file."`
	Version        int              `json:"version" minimum:"1" example:"1"`
	ExpectedSHA256 rest.Opt[string] `json:"expected_sha256,omitzero" doc:"Of the file's text, in hexadecimal digits."`
}

// RedactMemoryText is a request to redact a text in a tree of memory files.
type RedactMemoryText struct {
	Text string `json:"text" doc:"At least 4 characters; every occurrence becomes [REDACTED]." example:"hunter2!"`
}

// CompressMemory is a request for a proposal: how to turn a long index into pointers and files.
type CompressMemory struct {
	Content rest.Opt[string] `json:"content,omitzero" doc:"A text in place of the index, of at most 102,400 bytes."`
}

// MemoryProposal is a proposed change of memory files.
type MemoryProposal struct{ memoryfile.Proposal }

// WriteMemoryFiles is a request to write several memory files.
type WriteMemoryFiles struct {
	Files []memoryfile.NewFile `json:"files" maxItems:"1000" doc:"In this order; the rules hold for all together."`
}
