package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// changed returns the text of a result that shows what a change of a block changed: the lines that are new, with the
// size and the version of the block.
func changed(c Caller, before string, b block.Block) string {
	head := fmt.Sprintf("The core memory block `%s`%s", b.Label, sizeOf(c, b))
	switch {
	case before == b.Value:
		return head + " has this already; nothing changed."
	case b.Value == "":
		return head + " is empty now."
	}
	return head + " was edited" + changedLines(memoryfile.Lines(before), memoryfile.Lines(b.Value))
}

// sizeOf returns the version and the size of a block, in parentheses.
func sizeOf(c Caller, b block.Block) string {
	return fmt.Sprintf(" (version %d, %d of %d characters)", b.Version, utf8.RuneCountInString(b.Value),
		c.Agent.BlockChars(b.Limit))
}

// edit changes the value of the agent's block with a label.
func (m Memories) edit(ctx context.Context, c Caller, label text,
	do func(value string) (string, error)) (Result, error) {
	named, err := m.labelOf(ctx, c, label)
	if err != nil {
		return Result{}, err
	}
	before := ""
	b, err := m.Blocks.Edit(ctx, c.Org, c.Agent.ID, named, func(value string) (string, error) {
		before = value
		return do(value)
	})
	return Result{Text: changed(c, before, b), value: &b.Value}, err
}

// asValue returns the result of a tool that Letta has, too: for an agent made for Letta it is the block's new value
// alone.
func asValue(c Caller, r Result, err error) (Result, error) {
	if err == nil && r.value != nil && c.Agent.MadeFor() == agent.ForLetta {
		r.Text = *r.value
	}
	return r, err
}

// labelOf returns the label of the agent's block that a path names. If a block has the whole path as its label
// (operators may choose any label), that is the answer; otherwise it is the part after /memories/. A label may differ
// by case, if only one block is meant.
func (m Memories) labelOf(ctx context.Context, c Caller, path text) (string, error) {
	blocks, err := m.Blocks.OfAgent(ctx, c.Org, c.Agent.ID)
	if err != nil {
		return "", err
	}
	short := string(shortLabel(path))
	var alike []string
	for _, b := range blocks {
		switch {
		case b.Label == string(path):
			return b.Label, nil
		case strings.EqualFold(b.Label, short):
			alike = append(alike, b.Label)
		}
	}
	if len(alike) == 1 && alike[0] != short {
		return alike[0], nil
	}
	return short, nil
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
	result, err := m.edit(ctx, c, a.Label, func(value string) (string, error) {
		return block.Append(value, string(a.Content)), nil
	})
	return asValue(c, result, err)
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
	result, err := m.replace(ctx, c, a, block.ReplaceAll)
	return asValue(c, result, err)
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
	result, err := m.replace(ctx, c, coreReplaceArgs(a), block.ReplaceOnce)
	return asValue(c, result, err)
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
	result, err := m.edit(ctx, c, a.Label, func(value string) (string, error) {
		return block.Insert(value, string(a.New), int(deref(a.Line, block.AtEnd)))
	})
	return asValue(c, result, err)
}

type memoryRethinkArgs struct {
	Label text  `json:"label"`
	New   *text `json:"new_memory"`
}

// memoryRethink replaces the whole value of a block, which keeps its line ends, or creates the block. For an agent made
// for Letta a block that is not there is an error, as in Letta.
func (m Memories) memoryRethink(ctx context.Context, c Caller, a memoryRethinkArgs) (Result, error) {
	err := cmp.Or(must("memory_rethink", "label", a.Label), mustPut("memory_rethink", "new_memory", a.New != nil))
	if err != nil {
		return Result{}, err
	}
	label, err := m.labelOf(ctx, c, a.Label)
	if err != nil {
		return Result{}, err
	}
	b, err := m.Blocks.Edit(ctx, c.Org, c.Agent.ID, label, func(value string) (string, error) {
		return frame.EndedLike(value, string(*a.New)), nil
	})
	done := "was rewritten"
	if errors.Is(err, db.ErrNotFound) && c.Agent.MadeFor() != agent.ForLetta {
		b, err = m.Blocks.Add(ctx, c.Org, c.Agent.ID, block.New{Label: label, Value: string(*a.New)})
		done = "was created"
	}
	return asValue(c, Result{Text: fmt.Sprintf("The core memory block `%s`%s %s.", b.Label, sizeOf(c, b), done),
		value: &b.Value}, err)
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
	for _, o := range p {
		if o.Label == "" {
			return Result{}, db.Invalid("The patch names no block: give its label, or begin with *** Update Block: and the " +
				"label.")
		}
	}
	blocks, err := m.Blocks.Apply(ctx, c.Org, c.Agent.ID, p)
	if err != nil {
		return Result{}, err
	}
	lines := []string{fmt.Sprintf("The patch was applied, %s.", count(len(p), "operation"))}
	for _, b := range blocks {
		lines = append(lines, fmt.Sprintf("The core memory block `%s`%s.", b.Label, sizeOf(c, b)))
	}
	return Result{Text: strings.Join(lines, "\n")}, nil
}

// shortLabel returns the label in a path: the path without /memories/ at its start.
func shortLabel(path text) text {
	return text(strings.Trim(strings.TrimPrefix(strings.TrimPrefix(string(path), "/memories/"), "/"), "/"))
}
