package agentfile

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// The lists of a full file. Ids in them are those of the database. Items of one owner follow each other, in the order
// of the owners: the versions of the first block come before those of the second.
const (
	listOwnBlocks     = "loci_blocks"
	listVersions      = "loci_block_versions"
	listArchives      = "loci_archives"
	listPassages      = "loci_passages"
	listFolders       = "loci_folders"
	listOwnFiles      = "loci_files"
	listOriginals     = "loci_originals"
	listViews         = "loci_open_files"
	listConversations = "loci_conversations"
	listMessages      = "loci_messages"
	listKept          = "loci_kept_results"
	listCompactions   = "loci_compactions"
	listEvents        = "loci_events"
	listConsumers     = "loci_event_consumers"
	listIdentities    = "loci_identities"

	listWorking         = "loci_working_memories"
	listWorkingVersions = "loci_working_memory_versions"
	listTrees           = "loci_memory_trees"
	listTreeFiles       = "loci_memory_files"
	listTreeVersions    = "loci_memory_file_versions"
)

var fullLists = []string{listOwnBlocks, listVersions, listArchives, listPassages, listFolders, listOwnFiles,
	listOriginals, listViews, listConversations, listMessages, listKept, listCompactions,
	listEvents, listConsumers, listIdentities, listWorking, listWorkingVersions, listTrees, listTreeFiles,
	listTreeVersions}

// piece is a part of the original of a file. The pieces of a file, joined in their order, are the original.
type piece struct {
	FileID string `json:"file_id"`
	Bytes  []byte `json:"bytes"` // in base64
}

// writeFull writes the lists of a full file.
func (e *export) writeFull(ctx context.Context) error {
	blocks, err := e.Agents.Blocks.Export(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listOwnBlocks, each(blocks))
	list(e.writer, listVersions, ofEach(blocks, func(b block.Portable) iter.Seq2[block.PortableVersion, error] {
		return e.Agents.Blocks.ExportVersions(ctx, e.org, b.Block)
	}))
	if err := e.writeArchives(ctx); err != nil {
		return err
	}
	if err := e.writeFolders(ctx); err != nil {
		return err
	}
	if err := e.writeConversations(ctx); err != nil {
		return err
	}
	if err := e.writeWorking(ctx); err != nil {
		return err
	}
	if err := e.writeTrees(ctx); err != nil {
		return err
	}
	list(e.writer, listEvents, event.Export(ctx, e.Agents.DB, e.org, e.AgentID))
	consumers, err := event.ExportConsumers(ctx, e.Agents.DB, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listConsumers, each(consumers))
	identities, err := e.Agents.ExportIdentities(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listIdentities, each(identities))
	return nil
}

func (e *export) writeWorking(ctx context.Context) error {
	all, err := e.Agents.Working.Export(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listWorking, each(all))
	list(e.writer, listWorkingVersions, ofEach(all,
		func(m working.Portable) iter.Seq2[working.PortableVersion, error] {
			return e.Agents.Working.ExportVersions(ctx, e.org, m)
		}))
	return nil
}

func (e *export) writeTrees(ctx context.Context) error {
	trees, err := e.Agents.MemoryFiles.ExportTrees(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	var all []memoryfile.PortableFile
	for _, t := range trees {
		of, err := e.Agents.MemoryFiles.ExportFiles(ctx, e.org, t)
		if err != nil {
			return err
		}
		all = append(all, of...)
	}
	list(e.writer, listTrees, each(trees))
	list(e.writer, listTreeFiles, each(all))
	list(e.writer, listTreeVersions, ofEach(all,
		func(f memoryfile.PortableFile) iter.Seq2[memoryfile.PortableVersion, error] {
			return e.Agents.MemoryFiles.ExportVersions(ctx, e.org, f)
		}))
	return nil
}

func (e *export) writeArchives(ctx context.Context) error {
	archives, err := e.Agents.Archival.ExportArchives(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listArchives, each(archives))
	list(e.writer, listPassages, ofEach(archives, func(c archival.PortableArchive) iter.Seq2[archival.Passage, error] {
		return e.Agents.Archival.ExportPassages(ctx, e.org, c.ID)
	}))
	return nil
}

func (e *export) writeFolders(ctx context.Context) error {
	var all []files.PortableFile
	for _, f := range e.folders {
		of, err := e.Agents.Files.ExportFiles(ctx, e.org, f.ID)
		if err != nil {
			return err
		}
		all = append(all, of...)
	}
	list(e.writer, listFolders, each(e.folders))
	list(e.writer, listOwnFiles, each(all))
	list(e.writer, listOriginals, ofEach(all, func(f files.PortableFile) iter.Seq2[piece, error] {
		return e.original(ctx, f)
	}))
	list(e.writer, listViews, each(e.views))
	return nil
}

// original yields the original of a file, piece by piece.
func (e *export) original(ctx context.Context, f files.PortableFile) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		in, err := e.Agents.Files.Download(ctx, e.org, f.FolderID, f.ID)
		for bytes := make([]byte, files.PieceBytes); err == nil; {
			var n int
			if n, err = io.ReadFull(in, bytes); n > 0 && !yield(piece{f.ID, bytes[:n]}, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			yield(piece{}, err)
		}
	}
}

func (e *export) writeConversations(ctx context.Context) error {
	all, err := e.Agents.Recall.ExportConversations(ctx, e.org, e.AgentID)
	if err != nil {
		return err
	}
	list(e.writer, listConversations, each(all))
	list(e.writer, listMessages, ofEach(all,
		func(c recall.PortableConversation) iter.Seq2[recall.PortableMessage, error] {
			return func(yield func(recall.PortableMessage, error) bool) {
				for m, err := range e.Agents.Recall.Export(ctx, e.org, c.Key, 1) {
					if !yield(recall.PortableOf(c.ID, m), err) || err != nil {
						return
					}
				}
			}
		}))
	list(e.writer, listKept, ofEach(all, func(c recall.PortableConversation) iter.Seq2[recall.KeptResult, error] {
		return e.Agents.Recall.ExportKept(ctx, e.org, c)
	}))
	var compactions []compaction.Portable
	for _, c := range all {
		of, err := e.Agents.Compaction.Export(ctx, e.org, c.Key)
		if err != nil {
			return err
		}
		compactions = append(compactions, of...)
	}
	list(e.writer, listCompactions, each(compactions))
	return nil
}

// ofEach yields the items of each owner in turn.
func ofEach[O, T any](owners []O, items func(O) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, owner := range owners {
			for item, err := range items(owner) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// stream is a list of a full file, read item by item.
type stream[T any] struct {
	name  string
	next  func() (item, error, bool)
	stop  func()
	ready func(*T) error // checks an item, and gives it the ids that it gets
	held  *T             // read, and not taken
	place string         // of held
	err   error
}

func streamOf[T any](i *imports, name string, ready func(*T) error) *stream[T] {
	next, stop := iter.Pull2(i.file.items(name))
	return &stream[T]{name: name, next: next, stop: stop, ready: ready}
}

// peek returns the next item; nil at the end of the list, and after an error.
func (s *stream[T]) peek() *T {
	if s.held != nil || s.err != nil {
		return s.held
	}
	it, err, ok := s.next()
	if !ok || err != nil {
		s.err = err
		return nil
	}
	value := new(T)
	if s.err = decodeOwn(it.place, it.raw, value); s.err == nil {
		s.err = at(it.place, s.ready(value))
	}
	if s.err == nil {
		s.held, s.place = value, it.place
	}
	return s.held
}

// take yields the next items as long as they belong to an owner.
func (s *stream[T]) take(belongs func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v := s.peek(); v != nil && belongs(*v); v = s.peek() {
			s.held = nil
			if !yield(*v, nil) {
				return
			}
		}
		if s.err != nil {
			yield(*new(T), s.err)
		}
	}
}

// all yields all items.
func (s *stream[T]) all() iter.Seq2[T, error] { return s.take(func(T) bool { return true }) }

// end returns ErrInvalid if an item is left, which belongs to no owner.
func (s *stream[T]) end() error {
	if s.peek() != nil {
		return db.Invalid("%s: it belongs to nothing that is in the file before it", s.place)
	}
	return s.err
}
