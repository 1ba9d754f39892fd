package agentfile

import (
	"context"

	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
)

// restoreWorking stores the working memories of conversations, with their versions.
func (i *imports) restoreWorking(ctx context.Context) error {
	memories := streamOf(i, listWorking, func(m *working.Portable) error { return i.conversation(&m.Conversation) })
	defer memories.stop()
	versions := streamOf(i, listWorkingVersions, func(v *working.PortableVersion) error {
		v.Author.From = i.ids.any(v.Author.From)
		return firstOf(i.author(&v.Author.Provenance), i.conversation(&v.Conversation))
	})
	defer versions.stop()
	for m, err := range memories.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Working.RestoreMemory(ctx, i.org, m); err != nil {
			return at(memories.place, err)
		}
		ofMemory := versions.take(func(v working.PortableVersion) bool { return v.Conversation == m.Conversation })
		for v, err := range ofMemory {
			if err != nil {
				return err
			}
			if err := i.Agents.Working.RestoreVersion(ctx, i.org, v); err != nil {
				return at(versions.place, err)
			}
		}
		if err := i.Agents.Working.CheckVersions(ctx, i.org, m.Conversation); err != nil {
			return at(memories.place, err)
		}
	}
	return versions.end()
}

// restoreTrees creates the trees of memory files, with their files and all versions.
func (i *imports) restoreTrees(ctx context.Context) error {
	list := streamOf(i, listTrees, func(t *memoryfile.PortableTree) error {
		return firstOf(i.id("tree-", &t.ID), i.ownerID(&t.AgentID))
	})
	defer list.stop()
	trees := map[string]bool{}
	for t, err := range list.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.MemoryFiles.RestoreTree(ctx, i.org, t); err != nil {
			return at(list.place, err)
		}
		trees[t.ID] = true
	}
	return i.restoreTreeFiles(ctx, trees)
}

func (i *imports) restoreTreeFiles(ctx context.Context, trees map[string]bool) error {
	list := streamOf(i, listTreeFiles, func(f *memoryfile.PortableFile) error {
		err := firstOf(i.id("tree-", &f.TreeID), i.id("memfile-", &f.ID))
		if err == nil && f.SupersededBy != nil {
			err = i.id("memfile-", f.SupersededBy)
		}
		if err != nil || trees[f.TreeID] {
			return err
		}
		return db.Invalid("tree_id: the file has no such tree")
	})
	defer list.stop()
	versions := streamOf(i, listTreeVersions, func(v *memoryfile.PortableVersion) error {
		return firstOf(i.author(&v.Author), i.id("memfile-", &v.FileID))
	})
	defer versions.stop()
	successions := map[string][]db.Succession{} // by the tree
	for f, err := range list.all() {
		if err != nil {
			return err
		}
		if f.SupersededBy != nil {
			successions[f.TreeID] = append(successions[f.TreeID], db.Succession{Ended: f.ID, By: *f.SupersededBy})
		}
		if err := i.Agents.MemoryFiles.RestoreFile(ctx, i.org, f); err != nil {
			return at(list.place, err)
		}
		ofFile := versions.take(func(v memoryfile.PortableVersion) bool { return v.FileID == f.ID })
		for v, err := range ofFile {
			if err != nil {
				return err
			}
			if err := i.Agents.MemoryFiles.RestoreVersion(ctx, i.org, f.TreeID, v); err != nil {
				return at(versions.place, err)
			}
		}
		if err := i.Agents.MemoryFiles.CheckVersions(ctx, i.org, f); err != nil {
			return at(list.place, err)
		}
	}
	for tree, ofFile := range successions {
		if err := i.Agents.MemoryFiles.RestoreSuccessions(ctx, i.org, tree, ofFile); err != nil {
			return at(list.place, err)
		}
	}
	return versions.end()
}
