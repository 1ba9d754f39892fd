package agentfile

import (
	"context"
	"io"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

func (i *imports) restoreFolders(ctx context.Context) error {
	folders := streamOf(i, listFolders, func(f *files.PortableFolder) error {
		return firstOf(i.makers(&f.Makers), i.id("source-", &f.ID), i.agentID(&f.AgentID))
	})
	defer folders.stop()
	for f, err := range folders.all() {
		if err != nil {
			return err
		}
		if _, err := i.Agents.Files.RestoreFolder(ctx, i.org, f); err != nil {
			return at(folders.place, err)
		}
		i.folders[f.ID] = f.ID
	}
	if err := i.restoreFiles(ctx); err != nil {
		return err
	}
	views := streamOf(i, listViews, func(v *files.PortableView) error {
		return firstOf(i.id("file-", &v.FileID), i.agentID(&v.AgentID))
	})
	defer views.stop()
	for v, err := range views.all() {
		if err != nil {
			return err
		}
		if i.files[v.FileID].id == "" {
			return db.Invalid("%s.file_id: the file has no such file", views.place)
		}
		if err := i.Agents.Files.RestoreView(ctx, i.org, v); err != nil {
			return at(views.place, err)
		}
	}
	return nil
}

func (i *imports) restoreFiles(ctx context.Context) error {
	list := streamOf(i, listOwnFiles, func(f *files.PortableFile) error {
		return firstOf(i.provenance(&f.Provenance), i.id("file-", &f.ID), i.id("source-", &f.FolderID))
	})
	defer list.stop()
	pieces := streamOf(i, listOriginals, func(p *piece) error { return i.id("file-", &p.FileID) })
	defer pieces.stop()
	for f, err := range list.all() {
		if err != nil {
			return err
		}
		if i.folders[f.FolderID] == "" {
			return db.Invalid("%s.folder_id: the file has no such folder", list.place)
		}
		err := i.Agents.Files.RestoreFile(ctx, i.org, f, &original{pieces: pieces, file: f.ID})
		if pieces.err != nil {
			return pieces.err
		}
		if err != nil {
			return at(list.place, err)
		}
		i.files[f.ID] = storedFile{id: f.ID, folder: f.FolderID}
	}
	return pieces.end()
}

// original reads a file's original from its pieces.
type original struct {
	pieces *stream[piece]
	file   string
	left   []byte
}

// Read implements io.Reader.
func (o *original) Read(buffer []byte) (int, error) {
	for len(o.left) == 0 {
		p := o.pieces.peek()
		if o.pieces.err != nil {
			return 0, o.pieces.err
		}
		if p == nil || p.FileID != o.file {
			return 0, io.EOF
		}
		o.left, o.pieces.held = p.Bytes, nil
	}
	n := copy(buffer, o.left)
	o.left = o.left[n:]
	return n, nil
}
