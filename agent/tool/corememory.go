package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
)

// changed returns the text of a result that shows a block after a change.
func changed(b block.Block) string {
	head := fmt.Sprintf("The core memory block with label `%s` has been edited (version %d, %d of %d characters).",
		b.Label, b.Version, utf8.RuneCountInString(b.Value), b.Limit)
	if b.Value == "" {
		return head + " It is empty now."
	}
	return head + " It now reads:\n" + b.Value
}

// edit changes the value of the agent's block with a label.
func (m Memories) edit(ctx context.Context, c Caller, label text,
	do func(value string) (string, error)) (Result, error) {
	named, err := m.labelOf(ctx, c, label)
	if err != nil {
		return Result{}, err
	}
	b, err := m.Blocks.Edit(ctx, c.Org, c.Agent.ID, named, do)
	return Result{Text: changed(b)}, err
}

// labelOf returns the label of the agent's block that a path names. If a block has the whole path as its label
// (operators may choose any label), that is the answer; otherwise it is the part after /memories/.
func (m Memories) labelOf(ctx context.Context, c Caller, path text) (string, error) {
	short := string(shortLabel(path))
	if short == string(path) {
		return short, nil
	}
	blocks, err := m.Blocks.OfAgent(ctx, c.Org, c.Agent.ID)
	if err == nil && slices.ContainsFunc(blocks, func(b block.Block) bool { return b.Label == string(path) }) {
		return string(path), nil
	}
	return short, err
}

// must returns ErrInvalid if an argument is missing. pairs alternates names and values.
func must(tool string, pairs ...text) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return db.Invalid("%s needs the argument %s.", tool, pairs[i])
		}
	}
	return nil
}

// mustPut is like must, for a new text that replaces an old one. An empty text is accepted if it is present: it deletes
// the old one. An absent one is refused, because it may come from a call that was cut off.
func mustPut(tool string, name text, put bool) error {
	if !put {
		return db.Invalid("%s needs the argument %s. Give an empty text to delete.", tool, name)
	}
	return nil
}

type coreAppendArgs struct {
	Label   text `json:"label"`
	Content text `json:"content"`
}

func (m Memories) coreMemoryAppend(ctx context.Context, c Caller, a coreAppendArgs) (Result, error) {
	if err := must("core_memory_append", "label", a.Label, "content", a.Content); err != nil {
		return Result{}, err
	}
	return m.edit(ctx, c, a.Label, func(value string) (string, error) {
		return block.Append(value, string(a.Content)), nil
	})
}

type coreReplaceArgs struct {
	Label text       `json:"label"`
	Old   selection  `json:"old_content"`
	New   *selection `json:"new_content"`
}

func (m Memories) coreMemoryReplace(ctx context.Context, c Caller, a coreReplaceArgs) (Result, error) {
	err := cmp.Or(must("core_memory_replace", "label", a.Label, "old_content", text(a.Old)),
		mustPut("core_memory_replace", "new_content", a.New != nil))
	if err != nil {
		return Result{}, err
	}
	return m.replace(ctx, c, a, block.ReplaceAll)
}

// replace changes the value of a block of the agent. The function do gets the label, the value, the old text and its
// replacement, and returns the new value.
func (m Memories) replace(ctx context.Context, c Caller, a coreReplaceArgs,
	do func(label, value, old, text string) (string, error)) (Result, error) {
	blocks, err := m.Blocks.OfAgent(ctx, c.Org, c.Agent.ID)
	if err != nil {
		return Result{}, err
	}
	return m.edit(ctx, c, a.Label, func(value string) (string, error) {
		return replaced(value, agent.Labels(blocks), a.Old, *a.New, func(value, old, text string) (string, error) {
			return do(string(a.Label), value, old, text)
		})
	})
}

type memoryReplaceArgs struct {
	Label text       `json:"label"`
	Old   selection  `json:"old_string"`
	New   *selection `json:"new_string"`
}

func (m Memories) memoryReplace(ctx context.Context, c Caller, a memoryReplaceArgs) (Result, error) {
	err := cmp.Or(must("memory_replace", "label", a.Label, "old_string", text(a.Old)),
		mustPut("memory_replace", "new_string", a.New != nil))
	if err != nil {
		return Result{}, err
	}
	return m.replace(ctx, c, coreReplaceArgs(a), block.ReplaceOnce)
}

type memoryInsertArgs struct {
	Label text    `json:"label"`
	New   text    `json:"new_string"`
	Line  *number `json:"insert_line"`
}

func (m Memories) memoryInsert(ctx context.Context, c Caller, a memoryInsertArgs) (Result, error) {
	if err := must("memory_insert", "label", a.Label, "new_string", a.New); err != nil {
		return Result{}, err
	}
	return m.edit(ctx, c, a.Label, func(value string) (string, error) {
		return block.Insert(value, string(a.New), int(deref(a.Line, block.AtEnd)))
	})
}

type memoryRethinkArgs struct {
	Label text  `json:"label"`
	New   *text `json:"new_memory"`
}

// memoryRethink replaces the whole value of a block, or creates the block.
func (m Memories) memoryRethink(ctx context.Context, c Caller, a memoryRethinkArgs) (Result, error) {
	err := cmp.Or(must("memory_rethink", "label", a.Label), mustPut("memory_rethink", "new_memory", a.New != nil))
	if err != nil {
		return Result{}, err
	}
	label, err := m.labelOf(ctx, c, a.Label)
	if err != nil {
		return Result{}, err
	}
	b, err := m.Blocks.Edit(ctx, c.Org, c.Agent.ID, label, func(string) (string, error) {
		return string(*a.New), nil
	})
	if errors.Is(err, db.ErrNotFound) {
		b, err = m.Blocks.Add(ctx, c.Org, c.Agent.ID, block.New{Label: label, Value: string(*a.New)})
	}
	return Result{Text: changed(b)}, err
}

type memoryPatchArgs struct {
	Label text `json:"label"`
	Patch text `json:"patch"`
}

func (m Memories) memoryApplyPatch(ctx context.Context, c Caller, a memoryPatchArgs) (Result, error) {
	if err := must("memory_apply_patch", "patch", a.Patch); err != nil {
		return Result{}, err
	}
	p, err := block.ParsePatch(string(a.Label), string(a.Patch))
	if err != nil {
		return Result{}, err
	}
	blocks, err := m.Blocks.Apply(ctx, c.Org, c.Agent.ID, p)
	if err != nil {
		return Result{}, err
	}
	lines := []string{fmt.Sprintf("The patch was applied, %s.", count(len(p), "operation"))}
	for _, b := range blocks {
		lines = append(lines, changed(b))
	}
	return Result{Text: strings.Join(lines, "\n\n")}, nil
}

type memoryArgs struct {
	Command     text       `json:"command"`
	Path        text       `json:"path"`
	FileText    text       `json:"file_text"`
	Description text       `json:"description"`
	Old         selection  `json:"old_string"`
	New         *selection `json:"new_string"`
	Line        *number    `json:"insert_line"`
	InsertText  text       `json:"insert_text"`
	OldPath     text       `json:"old_path"`
	NewPath     text       `json:"new_path"`
}

// memoryArguments lists the arguments that each command of the tool memory takes.
var memoryArguments = map[text][]string{
	"create":      {"path", "file_text", "description"},
	"str_replace": {"path", "old_string", "new_string"},
	"insert":      {"path", "insert_line", "insert_text"},
	"delete":      {"path"},
	"rename":      {"old_path", "path", "new_path", "description"},
}

// memory is one tool. Its commands look like commands for files. A path is a label, with or without /memories/ before
// it.
func (m Memories) memory(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	do, ok := map[text]func(context.Context, Caller, memoryArgs) (Result, error){
		"create": m.memoryCreate, "str_replace": m.memoryStrReplace, "insert": m.memoryInsertCommand,
		"delete": m.memoryDelete, "rename": m.memoryRename,
	}[a.Command]
	if !ok {
		return Result{}, db.Invalid("Error: Unknown command '%s'. Supported commands: create, str_replace, insert, "+
			"delete, rename", echo(string(a.Command)))
	}
	if err := refuseOthers(a.Command, a, memoryArguments[a.Command]...); err != nil {
		return Result{}, err
	}
	return do(ctx, c, a)
}

// required returns ErrInvalid if an argument of the command is missing. pairs alternates names and values.
func (a memoryArgs) required(pairs ...text) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return db.Invalid("Error: %s is required for %s command", pairs[i], a.Command)
		}
	}
	return nil
}

// shortLabel returns the label in a path: the path without /memories/ at its start.
func shortLabel(path text) text {
	return text(strings.Trim(strings.TrimPrefix(strings.TrimPrefix(string(path), "/memories/"), "/"), "/"))
}

func (m Memories) memoryCreate(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	if err := a.required("path", shortLabel(a.Path)); err != nil {
		return Result{}, err
	}
	n := block.New{Label: string(shortLabel(a.Path)), Value: string(a.FileText)}
	if a.Description != "" {
		n.Description = new(string(a.Description))
	}
	b, err := m.Blocks.Add(ctx, c.Org, c.Agent.ID, n)
	return Result{Text: fmt.Sprintf("Created the core memory block `%s` with %d characters.", b.Label,
		utf8.RuneCountInString(b.Value))}, err
}

func (m Memories) memoryStrReplace(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	err := cmp.Or(a.required("path", shortLabel(a.Path), "old_string", text(a.Old)),
		mustPut("The command str_replace", "new_string", a.New != nil))
	if err != nil {
		return Result{}, err
	}
	return m.memoryReplace(ctx, c, memoryReplaceArgs{Label: a.Path, Old: a.Old, New: a.New})
}

func (m Memories) memoryInsertCommand(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	if err := a.required("path", shortLabel(a.Path), "insert_text", a.InsertText); err != nil {
		return Result{}, err
	}
	return m.memoryInsert(ctx, c, memoryInsertArgs{Label: a.Path, New: a.InsertText, Line: a.Line})
}

func (m Memories) memoryDelete(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	if err := a.required("path", shortLabel(a.Path)); err != nil {
		return Result{}, err
	}
	label, err := m.labelOf(ctx, c, a.Path)
	if err == nil {
		err = m.Blocks.Remove(ctx, c.Org, c.Agent.ID, label)
	}
	return Result{Text: fmt.Sprintf("The core memory block `%s` is no longer part of your memory.", label)}, err
}

// memoryRename gives a block a new label or a new description.
func (m Memories) memoryRename(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	from := a.OldPath
	if from == "" {
		from = a.Path
	}
	if err := a.required("old_path", shortLabel(from)); err != nil {
		return Result{}, err
	}
	if shortLabel(a.NewPath) == "" && a.Description == "" {
		return Result{}, a.required("new_path", a.NewPath)
	}
	label, err := m.labelOf(ctx, c, from)
	if err != nil {
		return Result{}, err
	}
	b, err := m.Blocks.EditAll(ctx, c.Org, c.Agent.ID, label, func(b *block.Block) error {
		if to := shortLabel(a.NewPath); to != "" {
			b.Label = string(to)
		}
		if a.Description != "" {
			b.Description = new(string(a.Description))
		}
		return nil
	})
	if shortLabel(a.NewPath) == "" {
		return Result{Text: fmt.Sprintf("The core memory block `%s` has a new description.", b.Label)}, err
	}
	return Result{Text: fmt.Sprintf("The core memory block `%s` has the label `%s` now.", label, b.Label)}, err
}
