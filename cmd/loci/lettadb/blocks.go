package lettadb

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

func cleanEscapes(text string) string { return recall.CleanEscapes(text) }

// lettaBlock is a block in Letta's database, or a checkpoint of one.
type lettaBlock struct {
	row
	Label       string
	Value       string
	Limit       int64
	Description *string
	Metadata    json.RawMessage `json:"metadata_"`
	ReadOnly    bool            `json:"read_only"`
	Hidden      *bool
	IsTemplate  bool    `json:"is_template"`
	Template    *string `json:"template_name"`

	ActorID *string  `json:"actor_id"`
	Tags    []string // tags of the block
}

// blocks imports the organization's blocks, with their checkpoints.
func (r *run) blocks(ctx context.Context) error {
	tags := `'[]'::json`
	if r.from.has("blocks_tags") {
		tags = `(SELECT json_agg(tag ORDER BY tag) FROM blocks_tags t WHERE t.block_id = b.id AND NOT t.is_deleted)`
	}
	all, err := list[lettaBlock](ctx, r, "block", `
		SELECT b.*, `+tags+` AS tags FROM block b WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, b := range all {
		history, err := list[lettaBlock](ctx, r, "block_history", `
			SELECT * FROM block_history WHERE block_id = $1 ORDER BY sequence_number, id`, b.ID)
		if err != nil {
			return err
		}
		_, err = r.Agents.Blocks.Block(ctx, r.org, b.ID)
		if missing, err := absent(err); err != nil {
			return err
		} else if !missing {
			r.report.stored("block", false)
			r.report.table("block_history").Present += len(history)
			continue
		}
		imported := r.report.table("block").Imported
		err = r.item(ctx, "block", b.ID, func(txRun *run) error { return txRun.block(ctx, b, history) })
		if err != nil {
			return err
		}
		if r.report.table("block").Imported > imported {
			r.report.table("block_history").Imported += len(history)
		} else {
			r.report.table("block_history").LeftOut += len(history)
		}
	}
	return nil
}

// block stores a block. Its checkpoints become its first versions, and its current value the last.
func (r *run) block(ctx context.Context, b lettaBlock, history []lettaBlock) error {
	last := r.version(b, b)
	var versions []block.Version
	for _, h := range history {
		versions = append(versions, r.version(b, h))
	}
	if n := len(versions); n == 0 || !same(versions[n-1], last) {
		versions = append(versions, last)
	}
	err := r.Agents.Blocks.RestoreBlock(ctx, r.org, block.Portable{
		Marks: block.Template{IsTemplate: b.IsTemplate, Name: b.Template},
		Block: block.Block{ID: b.ID, Label: last.Label, Description: last.Description, Value: last.Value,
			Limit: last.Limit, ReadOnly: b.ReadOnly, Hidden: b.Hidden != nil && *b.Hidden, Tags: b.Tags,
			Metadata: object(b.Metadata), Version: len(versions), CreatedAt: b.created(), UpdatedAt: b.updated()}})
	for n, v := range versions {
		if err != nil {
			return err
		}
		v.Version = n + 1
		err = r.Agents.Blocks.RestoreVersion(ctx, r.org, block.PortableVersion{BlockID: b.ID, Version: v})
	}
	return err
}

// notInLabel matches characters that labels of blocks may not have.
var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9_/-]`)

// labelOf returns the label for a block.
func labelOf(label string) string {
	return cmp.Or(clipped(notInLabel.ReplaceAllString(db.Clean(label), "_"), 50), "block")
}

// version returns a version for a checkpoint of a block, or for the block itself. If the value is longer than the
// limit, which Letta's server did not enforce, the limit is raised.
func (r *run) version(owner, b lettaBlock) block.Version {
	v := block.Version{Author: block.OperatorAuthor, Label: labelOf(b.Label), Value: db.Clean(b.Value),
		ReadOnly: owner.ReadOnly, At: b.created()}
	if b.ActorID != nil && *b.ActorID != "" {
		v.Author = db.Clean(*b.ActorID)
	}
	if b.Description != nil {
		v.Description = new(db.Clean(*b.Description))
	}
	if v.Label != b.Label {
		r.report.note("block %s: the label %q became %q, because labels have letters, digits, '_', '-' and '/'.", owner.ID,
			db.Short(b.Label), v.Label)
	}
	chars := int64(utf8.RuneCountInString(v.Value))
	if chars > b.Limit {
		r.report.note("block %s: its value has %d characters and its limit was %d, which was raised.", owner.ID, chars,
			b.Limit)
	}
	v.Limit = int(min(max(b.Limit, chars, 1), block.MaxLimit))
	return v
}

func same(a, b block.Version) bool {
	return a.Label == b.Label && a.Value == b.Value && a.Limit == b.Limit &&
		(a.Description == nil) == (b.Description == nil) && (a.Description == nil || *a.Description == *b.Description)
}
