package agentfile

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
)

func (i *imports) createBlocks(ctx context.Context) error {
	for it, err := range i.file.items(listBlocks) {
		if err != nil {
			return err
		}
		raw, removed, err := without(it.place, it.raw, "id", "preserve_on_migration", "project_id", "template_id",
			"base_template_id", "deployment_id", "entity_id", "created_by_id", "last_updated_by_id")
		if err != nil {
			return err
		}
		request, err := i.readBlock.Item(it.place, raw, &i.file.warnings)
		if err != nil {
			return err
		}
		created, err := i.Agents.Blocks.Create(ctx, i.org, block.OperatorAuthor, request.New())
		if err != nil {
			return at(it.place, err)
		}
		if err := remember(i.blocks, it.place, removed["id"], created.ID); err != nil {
			return err
		}
	}
	return nil
}

func (i *imports) createFolders(ctx context.Context) error {
	for it, err := range i.file.items(listSources) {
		if err != nil {
			return err
		}
		raw, removed, err := without(it.place, it.raw, "id", "embedding_config", "embedding")
		if err != nil {
			return err
		}
		var id string
		_ = json.Unmarshal(removed["id"], &id) // remember refuses what is no id
		request, err := i.readSource.Item(it.place, raw, &i.file.warnings)
		if err != nil {
			return err
		}
		f := files.PortableFolder{ID: "source-" + uuid.NewString(), Name: request.Name,
			Metadata: json.RawMessage(request.Metadata.Value), Description: request.Description.Pointer(),
			Instructions: request.Instructions.Pointer(),
			Skills:       request.Skills.Value || slices.Contains(i.file.own.SkillFolders, id),
			ChunkTokens:  request.ChunkTokens.Value, CreatedAt: time.Now(), UpdatedAt: time.Now(),
			Makers: db.Makers{MadeBy: db.ProvenanceOf(ctx)}}
		if _, err := i.Agents.Files.RestoreFolder(ctx, i.org, f); err != nil {
			return at(it.place, err)
		}
		if err := remember(i.folders, it.place, removed["id"], f.ID); err != nil {
			return err
		}
	}
	return nil
}

// createFiles stores the texts of files as new files, because Letta's format has no originals.
func (i *imports) createFiles(ctx context.Context) error {
	for it, err := range i.file.items(listFiles) {
		if err != nil {
			return err
		}
		var f fileText
		if err := decode(it.place, it.raw, &f); err != nil {
			return err
		}
		i.noteUnknown(it.place, it.raw, reflect.TypeFor[fileText]())
		folder, ok := i.folders[f.SourceID]
		if !ok {
			return db.Invalid("%s.source_id: the file has no source %q", it.place, db.Short(f.SourceID))
		}
		stored := storedFile{id: "file-" + uuid.NewString(), folder: folder}
		if f.Content == nil {
			i.leaveOut("%s: the file is left out, as its content is not in the file.", it.place)
			stored.id = ""
		} else if _, _, err := i.Agents.Files.Upload(ctx, i.org, folder, files.Upload{ID: stored.id,
			Override: *cmp.Or(f.Name, f.Original, new("upload.txt")), MediaType: "text/plain", KeepsClosed: true,
			Body: strings.NewReader(*f.Content)}); err != nil {
			return at(it.place, err)
		}
		if err := remember(i.files, it.place, f.ID, stored); err != nil {
			return err
		}
	}
	return nil
}
