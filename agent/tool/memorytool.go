package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// memoryArgs are the arguments of Letta's tool memory, which changes blocks, and of Anthropic's, which works on memory
// files. A schema names those of Letta; models that know Anthropic's tool use the others.
type memoryArgs struct {
	Command     text         `json:"command"`
	Path        text         `json:"path"`
	Range       list[number] `json:"view_range"`
	FileText    *text        `json:"file_text"`
	Description text         `json:"description"`
	Old         selection    `json:"old_string"`
	New         *selection   `json:"new_string"`
	Line        *number      `json:"insert_line"`
	InsertText  *text        `json:"insert_text"`
	OldPath     text         `json:"old_path"`
	NewPath     text         `json:"new_path"`
	OldStr      selection    `json:"old_str" schema:"-"`
	NewStr      *selection   `json:"new_str" schema:"-"`
}

// memoryArguments lists the arguments that each command of the tool memory takes.
var memoryArguments = map[text][]string{
	"view":        {"path", "view_range"},
	"create":      {"path", "file_text", "description"},
	"str_replace": {"path", "old_string", "new_string"},
	"insert":      {"path", "insert_line", "insert_text"},
	"delete":      {"path"},
	"rename":      {"old_path", "path", "new_path", "description"},
}

func (*memoryArgs) takes(command string) []string { return memoryArguments[text(command)] }

func (*memoryArgs) commands() string { return "view, create, str_replace, insert, delete and rename" }

// memory runs a command on a core memory block or on a memory file.
func (m Memories) memory(ctx context.Context, c Caller, a memoryArgs) (Result, error) {
	if err := a.checkNames(); err != nil {
		return Result{}, err
	}
	anthropic := a.OldStr != "" || a.NewStr != nil
	result, err := m.memoryInDialect(ctx, c, a, anthropic)
	switch {
	case !refused(err):
	case anthropic:
		err = otherNames{"old_string": "old_str", "new_string": "new_str"}.in(err)
	default:
		err = otherNames{"old_str": "old_string", "new_str": "new_string"}.in(err)
	}
	return result, err
}

// memoryInDialect is memory. Its errors may name arguments as the other dialect does.
func (m Memories) memoryInDialect(ctx context.Context, c Caller, a memoryArgs, anthropic bool) (Result, error) {
	if err := refuseOthers(a.Command, a.inOneDialect(), memoryArguments[a.Command]...); err != nil {
		return Result{}, err
	}
	a = a.inOneDialect()
	if err := a.complete(); err != nil {
		return Result{}, err
	}
	at, err := m.placeOf(ctx, c, &a)
	if err != nil {
		return Result{}, err
	}
	isFile := at.isFile(c.Agent, a, anthropic)
	if err := cmp.Or(at.check(a, isFile), at.checkDialect(c.Agent, a, isFile)); err != nil {
		return Result{}, err
	}
	if isFile {
		return m.memoryOfFiles(ctx, c, a, at)
	}
	do := map[text]func(context.Context, Caller, memoryArgs, place) (Result, error){
		"view": m.memoryView, "create": m.memoryCreate, "str_replace": m.memoryStrReplace, "insert": m.memoryInsertCommand,
		"delete": m.memoryDelete, "rename": m.memoryRename,
	}[a.Command]
	return do(ctx, c, a, at)
}

// checkNames returns ErrInvalid if a call gives an argument two values, under its names of both dialects.
func (a memoryArgs) checkNames() error {
	switch {
	case a.Old != "" && a.OldStr != "" && a.Old != a.OldStr:
		return twoNames("old_str", "old_string")
	case a.New != nil && a.NewStr != nil && *a.New != *a.NewStr:
		return twoNames("new_str", "new_string")
	case a.Command == "rename" && a.Path != "" && a.OldPath != "" && shortLabel(a.Path) != shortLabel(a.OldPath):
		return twoNames("path", "old_path")
	}
	return nil
}

// inOneDialect returns the arguments under the names that the schema has.
func (a memoryArgs) inOneDialect() memoryArgs {
	a.Old, a.New = cmp.Or(a.Old, a.OldStr), cmp.Or(a.New, a.NewStr)
	a.OldStr, a.NewStr = "", nil
	if a.Command == "rename" && a.OldPath == "" {
		a.OldPath, a.Path = a.Path, ""
	}
	return a
}

// complete returns ErrInvalid if an argument of the command is missing.
func (a memoryArgs) complete() error {
	label := func(p text) bool { return shortLabel(p) != "" }
	needs := map[text][]struct {
		name    string
		present bool
	}{
		"create":      {{"path", label(a.Path)}},
		"str_replace": {{"path", label(a.Path)}, {"old_string", a.Old != ""}},
		"insert":      {{"path", label(a.Path)}, {"insert_text", a.InsertText != nil}},
		"delete":      {{"path", label(a.Path)}},
		"rename":      {{"old_path", label(a.OldPath)}, {"new_path", label(a.NewPath) || a.Description != ""}},
	}
	const blockOrFile = ": the label of a core memory block, such as human, or the path of a memory file, such as " +
		memoryfile.Root + "/notes.md"
	examples := map[string]string{"path": blockOrFile, "old_path": blockOrFile, "new_path": blockOrFile}
	for _, n := range needs[a.Command] {
		given := map[string]text{"path": a.Path, "old_path": a.OldPath, "new_path": a.NewPath}[n.name]
		switch {
		case !n.present && given != "":
			return db.Invalid("%s is %s, the directory of all memory files. Name a file in it, such as %s/notes.md, or the "+
				"label of a core memory block. Nothing was done.", n.name, echo(string(given)), memoryfile.Root)
		case !n.present:
			return db.Invalid("Error: %s is required for %s command%s", n.name, a.Command, examples[n.name])
		}
	}
	if a.Command == "str_replace" {
		return mustPut("The command str_replace", "new_string", a.New != nil)
	}
	return nil
}

// place says what stands at the path of a call.
type place struct {
	path   text
	label  string // of the block that the path names, whether there is one or not
	file   string // the path of the memory file or of the directory, whether there is one or not
	labels []string

	isBlock, isOther bool // there is a block, and a file or a directory
}

// placeOf finds out what stands at the path of a call: a label with or without /memories/ before it, or a path below
// /memories. It writes the paths of the call in their usual form.
func (m Memories) placeOf(ctx context.Context, c Caller, a *memoryArgs) (p place, err error) {
	blocks, err := m.Blocks.OfAgent(ctx, c.Org, c.Agent.ID)
	if err != nil {
		return p, err
	}
	for _, b := range blocks {
		p.labels = append(p.labels, b.Label)
	}
	for _, path := range []*text{&a.Path, &a.OldPath, &a.NewPath} {
		*path = p.rooted(*path)
	}
	p.path = cmp.Or(a.Path, a.OldPath)
	if p.label, err = m.labelOf(ctx, c, p.path); err != nil {
		return p, err
	}
	p.isBlock = slices.Contains(p.labels, p.label)
	p.file = memoryfile.Root
	if short := string(shortLabel(p.path)); short != "" && string(p.path) != memoryfile.Root {
		p.file += "/" + short
	}
	t, err := m.MemoryFiles.OfAgent(ctx, c.Org, c.Agent.ID)
	if errors.Is(err, db.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	switch _, err = m.MemoryFiles.List(ctx, c.Org, t.ID, p.file, db.Held{}); {
	case err == nil:
		p.isOther = true
	case refused(err):
		err = nil
	}
	return p, err
}

// rooted returns a path below /memories in its usual form, unless it is the label of a block: small models leave out
// the slash, or write capitals.
func (p place) rooted(path text) text {
	first, below, nested := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(string(path), "."), "/"), "/")
	if !strings.EqualFold("/"+first, memoryfile.Root) || slices.Contains(p.labels, string(path)) {
		return path
	}
	if !nested {
		return text(memoryfile.Root)
	}
	return text(memoryfile.Root + "/" + below)
}

// isFile reports whether a call is for memory files: it names one, or it speaks Anthropic's dialect about what there is
// not yet.
func (p place) isFile(a agent.Agent, args memoryArgs, anthropic bool) bool {
	below := strings.HasPrefix(string(p.path), memoryfile.Root+"/")
	switch {
	case p.file == memoryfile.Root:
		return true
	case args.Command == "create" && args.Description != "" && path.Ext(p.file) == "":
		return below && a.MadeFor() != agent.ForLetta
	case args.Command != "create" && p.isBlock != p.isOther:
		return p.isOther
	case anthropic || args.Command == "view":
		return below
	}
	return below && a.MadeFor() != agent.ForLetta
}

// check returns an error if nothing stands at the path of a call, or something of the other kind would then have the
// same name. It names what to call instead.
func (p place) check(a memoryArgs, isFile bool) error {
	switch {
	case a.Command == "create" && isFile && p.isBlock:
		return db.Conflict("There is a core memory block %s: change it with path=%s, or give the file another name, such as "+
			"%s.md. Nothing was created.", p.label, p.label, p.file)
	case a.Command == "create" && !isFile && p.isBlock:
		return db.Conflict("There is a core memory block %s already: change it with str_replace or insert. Nothing was "+
			"created.", p.label)
	case a.Command == "create" && !isFile && p.isOther:
		return db.Conflict("There is a memory file %s: change it with path=%s, or give the block another label. Nothing was "+
			"created.", p.file, p.file)
	case a.Command == "create" || p.isBlock || p.isOther || p.file == memoryfile.Root || p.file == memoryfile.ManifestPath:
		return nil
	}
	blocks := "You have no core memory blocks"
	if len(p.labels) > 0 {
		blocks = "Your core memory blocks are " + joined(p.labels)
	}
	return db.NotFound("There is neither a core memory block nor a memory file %s. %s; the command view with path=%s "+
		"lists "+
		"your memory files.", echo(string(p.path)), blocks, memoryfile.Root)
}

// checkDialect returns an error if a call means a block with arguments for files, or the reverse. It names the call
// that is meant.
func (p place) checkDialect(a agent.Agent, args memoryArgs, isFile bool) error {
	to := string(shortLabel(args.NewPath))
	switch {
	case isFile && args.Command == "create" && args.Description != "" && path.Ext(p.file) == "":
		return db.Invalid("A memory file has no description. For the file %s, leave description out; for a core memory "+
			"block, give path=%s. Nothing was created.", p.file, p.label)
	case !isFile && args.Command == "create" && !block.IsLabel(p.label):
		return db.Invalid("%s is no label of a core memory block, which has from 1 to 50 letters, digits, '_', '-' and '/'. "+
			"For a memory file, give path=%s/%s. Nothing was created.", echo(p.label), memoryfile.Root, echo(p.label))
	case args.Command != "rename":
		return nil
	case isFile && args.Description != "":
		return db.Invalid("A memory file has no description: rename %s without it. Nothing was renamed.", p.file)
	case isFile && slices.Contains(p.labels, to):
		return db.Conflict("There is a core memory block %s: give the file another name, such as %s/%s.md. Nothing was "+
			"renamed.", to, memoryfile.Root, to)
	case isFile || to == "" || a.MadeFor() == agent.ForLetta:
		return nil
	case path.Ext(to) != "" || strings.HasPrefix(string(args.NewPath), memoryfile.Root+"/"):
		other := ""
		if label := strings.TrimSuffix(to, path.Ext(to)); label != p.label {
			other = " To give the block another label, give new_path=" + label + "."
		}
		return db.Invalid("%s is a core memory block, which cannot become a file: create %s/%s with its text, then delete "+
			"the block.%s Nothing was renamed.", p.label, memoryfile.Root, to, other)
	}
	return nil
}

// memoryOfFiles runs a command on memory files.
func (m Memories) memoryOfFiles(ctx context.Context, c Caller, a memoryArgs, at place) (Result, error) {
	f := memoryFilesArgs{Command: a.Command, Path: text(at.file), Range: a.Range, FileText: a.FileText, Old: a.Old,
		New: a.New, Line: a.Line, InsertText: a.InsertText}
	if a.Command == "rename" {
		f.Path, f.OldPath, f.NewPath = "", text(at.file), a.NewPath
		if !strings.HasPrefix(string(a.NewPath), "/") {
			f.NewPath = text(memoryfile.Root) + "/" + a.NewPath
		}
	}
	result, err := m.memoryFiles(ctx, c, f)
	switch {
	case err != nil:
	case a.Command == "create" && a.Description != "":
		result.Text += "\nA memory file has no description: it was left out."
	case at.file == memoryfile.Root && len(at.labels) > 0:
		result.Text += fmt.Sprintf("\nYour core memory blocks are no files: view shows one by its label (%s).",
			joined(at.labels))
	}
	return result, err
}

// memoryView shows a block with numbers of lines.
func (m Memories) memoryView(ctx context.Context, c Caller, a memoryArgs, at place) (Result, error) {
	b, err := m.Blocks.Labelled(ctx, c.Org, c.Agent.ID, at.label)
	if err != nil {
		return Result{}, err
	}
	head := fmt.Sprintf("The core memory block `%s`%s", b.Label, sizeOf(c, b))
	if b.Value == "" {
		return Result{Text: head + " is empty."}, nil
	}
	return viewLines(head+":", memoryfile.Lines(b.Value), a.Range, c.maxChars())
}

func (m Memories) memoryCreate(ctx context.Context, c Caller, a memoryArgs, _ place) (Result, error) {
	n := block.New{Label: string(shortLabel(a.Path)), Value: string(deref(a.FileText, ""))}
	if a.Description != "" {
		n.Description = new(string(a.Description))
	}
	b, err := m.Blocks.Add(ctx, c.Org, c.Agent.ID, n)
	return Result{Text: fmt.Sprintf("Created the core memory block `%s`%s.", b.Label, sizeOf(c, b))}, err
}

func (m Memories) memoryStrReplace(ctx context.Context, c Caller, a memoryArgs, at place) (Result, error) {
	return m.replace(ctx, c, coreReplaceArgs{Label: text(at.label), Old: a.Old, New: a.New}, block.ReplaceOnce)
}

func (m Memories) memoryInsertCommand(ctx context.Context, c Caller, a memoryArgs, at place) (Result, error) {
	if *a.InsertText == "" {
		return Result{}, db.Invalid("Error: insert_text is required for insert command")
	}
	return m.edit(ctx, c, text(at.label), func(value string) (string, error) {
		return block.Insert(value, string(*a.InsertText), int(deref(a.Line, block.AtEnd)))
	})
}

func (m Memories) memoryDelete(ctx context.Context, c Caller, _ memoryArgs, at place) (Result, error) {
	err := m.Blocks.Remove(ctx, c.Org, c.Agent.ID, at.label)
	return Result{Text: fmt.Sprintf("The core memory block `%s` is no longer part of your memory.", at.label)}, err
}

// memoryRename gives a block a new label or a new description.
func (m Memories) memoryRename(ctx context.Context, c Caller, a memoryArgs, at place) (Result, error) {
	to := string(shortLabel(a.NewPath))
	b, err := m.Blocks.EditAll(ctx, c.Org, c.Agent.ID, at.label, func(b *block.Block) error {
		b.Label = cmp.Or(to, b.Label)
		if a.Description != "" {
			b.Description = new(string(a.Description))
		}
		return nil
	})
	if to == "" {
		return Result{Text: fmt.Sprintf("The core memory block `%s` has a new description.", b.Label)}, err
	}
	return Result{Text: fmt.Sprintf("The core memory block `%s` has the label `%s` now.", at.label, b.Label)}, err
}
