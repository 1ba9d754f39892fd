package agentfile

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// writeFull writes the lists that only a full file has.
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
		files, err := e.Agents.MemoryFiles.ExportFiles(ctx, e.org, t)
		if err != nil {
			return err
		}
		all = append(all, files...)
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
		folderFiles, err := e.Agents.Files.ExportFiles(ctx, e.org, f.ID)
		if err != nil {
			return err
		}
		all = append(all, folderFiles...)
	}
	list(e.writer, listFolders, each(e.folders))
	list(e.writer, listOwnFiles, each(all))
	list(e.writer, listOriginals, ofEach(all, func(f files.PortableFile) iter.Seq2[piece, error] {
		return e.original(ctx, f)
	}))
	list(e.writer, listViews, each(e.views))
	return nil
}

// original yields the original of a file in pieces.
func (e *export) original(ctx context.Context, f files.PortableFile) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		content, err := e.Agents.Files.Download(ctx, e.org, f.FolderID, f.ID)
		for bytes := make([]byte, files.PieceBytes); err == nil; {
			var n int
			if n, err = io.ReadFull(content, bytes); n > 0 && !yield(piece{f.ID, bytes[:n]}, nil) {
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
	var compactions []store.Portable
	for _, c := range all {
		exported, err := e.Agents.Compaction.Export(ctx, e.org, c.Key)
		if err != nil {
			return err
		}
		compactions = append(compactions, exported...)
	}
	list(e.writer, listCompactions, each(compactions))
	return nil
}
