package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// memoryFilesTool is the name of the tool for memory files. It takes the arguments of Anthropic's memory tool.
const memoryFilesTool = "memory_files"

// MemoryIsFiles reports whether a call of "memory" means memory_files. Anthropic's tool for memory files is called
// "memory", but so is the tool for blocks. The call means memory_files if the agent has that tool and not the one for
// blocks.
func MemoryIsFiles(a agent.Agent) bool { return a.HasTool(memoryFilesTool) && !a.HasTool("memory") }

// inNameOf returns the name of the tool that an agent's call with the given name means.
func inNameOf(a agent.Agent, name string) string {
	if name == "memory" && MemoryIsFiles(a) {
		return memoryFilesTool
	}
	return name
}

type memoryFilesArgs struct {
	Command    text         `json:"command"`
	Path       text         `json:"path"`
	Range      list[number] `json:"view_range"`
	FileText   *text        `json:"file_text"`
	Old        selection    `json:"old_str"`
	New        *selection   `json:"new_str"`
	Line       *number      `json:"insert_line"`
	InsertText *text        `json:"insert_text"`
	OldPath    text         `json:"old_path"`
	NewPath    text         `json:"new_path"`
	Until      text         `json:"valid_until"`
	Supersedes text         `json:"supersedes"`
	AsOf       text         `json:"as_of"`
	Version    *number      `json:"version"`
}

// memoryFileArguments lists the arguments that each command of memory_files takes.
var memoryFileArguments = map[text][]string{
	"view":        {"path", "view_range", "as_of"},
	"create":      {"path", "file_text", "valid_until", "supersedes"},
	"overwrite":   {"path", "file_text", "version"},
	"str_replace": {"path", "old_str", "new_str"},
	"insert":      {"path", "insert_line", "insert_text"},
	"delete":      {"path"},
	"rename":      {"old_path", "new_path"},
}

func (*memoryFilesArgs) takes(command string) []string { return memoryFileArguments[text(command)] }

func (*memoryFilesArgs) commands() string {
	return "view, create, overwrite, str_replace, insert, delete and rename"
}

// memoryFiles runs a command on the memory files of an agent.
func (m Memories) memoryFiles(ctx context.Context, c Caller, a memoryFilesArgs) (Result, error) {
	result, err := m.onMemoryFiles(ctx, c, a)
	where := "view " + memoryfile.Root + " lists your files"
	if slices.Contains([]text{"overwrite", "str_replace", "insert"}, a.Command) {
		where += ", and create makes one"
	}
	return result, whereFound(err, where)
}

func (m Memories) onMemoryFiles(ctx context.Context, c Caller, a memoryFilesArgs) (Result, error) {
	if err := refuseOthers(a.Command, a, memoryFileArguments[a.Command]...); err != nil {
		return Result{}, err
	}
	if a.Command == "view" {
		return m.viewMemory(ctx, c, a)
	}
	do := map[text]func(context.Context, memoryfile.At, memoryFilesArgs) (Result, error){
		"create": nil, "overwrite": m.overwriteMemory, "str_replace": m.replaceInMemory, "insert": m.insertIntoMemory,
		"delete": m.deleteMemory, "rename": m.renameMemory,
	}[a.Command]
	if err := a.complete(); err != nil {
		return Result{}, err
	}
	until, err := validUntil(a.Until, clockOf(c.Agent))
	if err != nil {
		return Result{}, err
	}
	t, err := m.MemoryFiles.Writable(ctx, c.Org, c.Agent.ID)
	if err != nil {
		return Result{}, err
	}
	target := memoryfile.At{Org: c.Org, Tree: t.ID, Author: db.Provenance{AgentID: c.Agent.ID}.Or(ctx)}
	if a.Command == "create" {
		return m.createMemory(ctx, target, a, memoryfile.Dates{Until: boundOf(until), Supersedes: string(a.Supersedes)})
	}
	return do(ctx, target, a)
}

// complete returns ErrInvalid if an argument of the command is missing.
func (a memoryFilesArgs) complete() error {
	present := map[string]bool{"path": a.Path != "", "file_text": a.FileText != nil, "old_str": a.Old != "",
		"insert_text": a.InsertText != nil, "old_path": a.OldPath != "",
		"new_path": a.NewPath != "", "version": a.Version != nil}
	for _, name := range map[text][]string{"create": {"path", "file_text"},
		"overwrite": {"path", "file_text", "version"}, "str_replace": {"path", "old_str"},
		"insert": {"path", "insert_text"}, "delete": {"path"}, "rename": {"old_path", "new_path"},
	}[a.Command] {
		if !present[name] {
			hint := ""
			if name == "version" {
				hint = " The command view shows it."
			}
			return db.Invalid("The command %s needs the argument %s.%s", a.Command, name, hint)
		}
	}
	return mustPut("The command str_replace", "new_str", a.New != nil || a.Command != "str_replace")
}

// maxListed is the largest number of paths that a view of a directory shows.
const maxListed = 200

// viewMemory shows a directory or the lines of a file.
func (m Memories) viewMemory(ctx context.Context, c Caller, a memoryFilesArgs) (Result, error) {
	path := string(a.Path)
	if path == "" {
		path = memoryfile.Root
	}
	path, err := memoryfile.ParsePath(path)
	if err != nil {
		return Result{}, err
	}
	t, err := m.MemoryFiles.OfAgent(ctx, c.Org, c.Agent.ID)
	if errors.Is(err, db.ErrNotFound) && path == memoryfile.Root {
		return withNotes(renderTree(path, nil), []string{memoryfile.IndexRules{}.Words()}), nil
	}
	if errors.Is(err, db.ErrNotFound) && path == memoryfile.ManifestPath {
		return renderManifest(memoryfile.DefaultManifest(), a.Range, c.maxChars())
	}
	if errors.Is(err, db.ErrNotFound) {
		err = db.NotFound("The path %s does not exist, and you have no memory files yet", path)
	}
	if err != nil {
		return Result{}, err
	}
	return m.viewTree(ctx, c, t, path, a)
}

// viewTree shows a directory or a file of a tree.
func (m Memories) viewTree(ctx context.Context, c Caller, t memoryfile.Attached, path string, a memoryFilesArgs) (
	Result, error) {
	view, now := a.Range, clockOf(c.Agent)
	asOf, err := recall.ParseStart(string(a.AsOf), now.zone)
	if err != nil {
		return Result{}, db.Invalid(invalidTime, "as_of", echo(string(a.AsOf)))
	}
	entries, err := m.MemoryFiles.List(ctx, c.Org, t.ID, path, db.Held{AsOf: asOf})
	if errors.Is(err, db.ErrNotFound) && path == memoryfile.ManifestPath {
		return renderManifest(memoryfile.DefaultManifest(), view, c.maxChars())
	}
	if err != nil {
		return Result{}, err
	}
	if len(entries) != 1 || entries[0].Path != path {
		if len(view) > 0 {
			return Result{}, db.Invalid("%s is a directory, which view_range is not for.", path)
		}
		notes, err := m.stateOf(ctx, c, t, path)
		return withNotes(renderTree(path, entries), notes), err
	}
	f, err := m.MemoryFiles.File(ctx, c.Org, t.ID, path)
	if err != nil {
		return Result{}, err
	}
	shown, err := renderFile(f, view, c.maxChars())
	if dates := held(f.Validity, f.Ended, f.SupersededBy, now); dates != "" {
		shown.Text = "Note: " + f.Path + dates + ".\n" + shown.Text
	}
	return shown, err
}

// renderManifest shows the manifest of a tree that has no manifest file.
func renderManifest(m memoryfile.Manifest, asked []number, chars int) (Result, error) {
	manifest := memoryfile.File{Entry: memoryfile.Entry{Path: memoryfile.ManifestPath}, Content: m.Render()}
	return renderFile(manifest, asked, chars)
}

// stateOf returns, for an agent that views the root of its files, the rules of the index and the faults to fix.
func (m Memories) stateOf(ctx context.Context, c Caller, t memoryfile.Attached, path string) ([]string, error) {
	if path != memoryfile.Root {
		return nil, nil
	}
	l, err := m.MemoryFiles.Lint(ctx, c.Org, t.ID)
	if words := t.Rules.Words(); words != "" {
		return append([]string{words}, l.Words()...), err
	}
	return nil, err
}

// renderTree lists the content of a directory and of its subdirectories.
func renderTree(dir string, entries []memoryfile.Entry) string {
	if len(entries) == 0 {
		return fmt.Sprintf("%s is empty: you have no memory files yet.", dir)
	}
	sizes := map[string]int{}
	var shown []string
	for _, e := range entries {
		names := strings.Split(strings.TrimPrefix(e.Path, dir+"/"), "/")
		path := dir
		for i, name := range names[:min(len(names), 2)] {
			path += "/" + name
			if i < len(names)-1 {
				path += "/"
			}
			if _, ok := sizes[path]; !ok {
				shown = append(shown, path)
			}
			sizes[path] += e.SizeBytes
			path = strings.TrimSuffix(path, "/")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %s. Two levels of it, with sizes:\n", dir, count(len(entries), "file"))
	for _, path := range shown[:min(len(shown), maxListed)] {
		fmt.Fprintf(&b, "%s\t%s\n", size(sizes[path]), path)
	}
	if n := len(shown) - maxListed; n > 0 {
		fmt.Fprintf(&b, "%d more are not listed: view a directory in it.\n", n)
	}
	return b.String()
}

// size returns a number of bytes as a listing shows it.
func size(bytes int) string {
	if bytes < 1024 {
		return fmt.Sprintf("%dB", bytes)
	}
	return fmt.Sprintf("%.1fK", float64(bytes)/1024)
}

// renderFile shows the lines of a file, with their numbers, in a result of so many characters.
func renderFile(f memoryfile.File, view []number, chars int) (Result, error) {
	lines := memoryfile.Lines(f.Content)
	if len(lines) == 0 {
		return Result{Text: f.Path + " is empty" + versionOf(f) + "."}, nil
	}
	return viewLines(fmt.Sprintf("%s has %s%s.", f.Path, count(len(lines), "line"), versionOf(f)), lines, view, chars)
}

// viewLines shows the lines that a view_range asks for, under a head. If they do not fit into so many characters, it
// says how to read on.
func viewLines(head string, lines []string, view []number, chars int) (Result, error) {
	from, to, err := rangeOf(view, len(lines))
	if err != nil {
		return Result{}, err
	}
	const more = 200 // characters of the head and the last sentence
	lines = slices.Clone(lines)
	lines[from-1] = cutLine(lines[from-1], chars-more) // no call could show it whole
	return Result{Text: most(chars, to-from+1, func(n int) string {
		text := head + "\n" + numbered(lines, from, from+n-1)
		if last := from + n - 1; last < to {
			text += fmt.Sprintf("The lines from %d on do not fit: view_range=[%d, %d] shows them.\n", last+1, last+1, to)
		}
		return text
	})}, nil
}

// versionOf returns the version of a file in brackets; empty for a manifest that is not stored.
func versionOf(f memoryfile.File) string {
	if f.Version == 0 {
		return ""
	}
	return fmt.Sprintf(" (version %d)", f.Version)
}

// rangeOf returns the first and last line that a view_range asks for, counted from 1; all lines if it is absent.
func rangeOf(view []number, lines int) (from, to int, err error) {
	if len(view) == 0 {
		return 1, lines, nil
	}
	if len(view) == 2 {
		from, to = int(view[0]), int(view[1])
		if to == -1 || to > lines {
			to = lines
		}
		if from >= 1 && from <= lines && to >= from {
			return from, to, nil
		}
	}
	return 0, 0, db.Invalid("view_range is %s; it must be two lines of the text, the first from 1 to %d, the second not "+
		"before it, or -1 for the end.", echo(literal(view)), lines)
}

// numbered returns lines as a view shows them. It marks stray line ends within a line, so that they cannot fake a line.
func numbered(lines []string, from, to int) string {
	var b strings.Builder
	for i := max(from, 1); i <= min(to, len(lines)); i++ {
		fmt.Fprintf(&b, "%6d\t%s\n", i, line(lines[i-1]))
	}
	return b.String()
}

func (m Memories) createMemory(ctx context.Context, at memoryfile.At, a memoryFilesArgs, d memoryfile.Dates) (Result,
	error) {
	c, err := m.MemoryFiles.Create(ctx, at, string(a.Path), string(*a.FileText), d)
	f := c.File
	return withNotes(fmt.Sprintf("Created %s with %s (%s).", f.Path,
		count(len(memoryfile.Lines(f.Content)), "line"), count(utf8.RuneCountInString(f.Content), "character")), c.Notes), err
}

// overwriteMemory replaces the whole text of a file that is still at the version that the model read.
func (m Memories) overwriteMemory(ctx context.Context, at memoryfile.At, a memoryFilesArgs) (Result, error) {
	version := int(*a.Version)
	if version < 1 {
		return Result{}, db.Invalid("version is %d; it must be the version that view shows, from 1. Nothing was changed.",
			version)
	}
	text := string(*a.FileText)
	if current, err := m.MemoryFiles.File(ctx, at.Org, at.Tree, string(a.Path)); err == nil { // it keeps its line ends
		text = frame.EndedLike(current.Content, text)
	}
	c, err := m.MemoryFiles.WriteDated(ctx, at, memoryfile.NewFile{Path: string(a.Path), Content: text,
		ExpectedVersion: &version}, memoryfile.Dates{})
	if mismatch, ok := errors.AsType[*memoryfile.MismatchError](err); ok {
		f := mismatch.Current
		return Result{}, db.Conflict("%s is at version %d, and not at version %d: it has changed since you read it. Nothing "+
			"was changed. View it, then overwrite version %d with what both say, or change a part with str_replace.", f.Path,
			f.Version, version, f.Version)
	}
	if errors.Is(err, db.ErrNotFound) {
		return Result{}, db.NotFound("The file %s does not exist; nothing was changed", a.Path)
	}
	return withNotes(fmt.Sprintf("Overwrote %s (version %d, %s, %s).", c.File.Path, c.File.Version,
		count(len(memoryfile.Lines(c.File.Content)), "line"), size(len(c.File.Content))), c.Notes), err
}

// boundOf returns a bound; nil if there is none.
func boundOf(at *time.Time) *db.Bound {
	if at == nil {
		return nil
	}
	return &db.Bound{At: at}
}

func (m Memories) replaceInMemory(ctx context.Context, target memoryfile.At, a memoryFilesArgs) (Result, error) {
	blocks, err := m.Blocks.OfAgent(ctx, target.Org, target.Author.AgentID)
	if err != nil {
		return Result{}, err
	}
	return m.editMemory(ctx, target, a, func(path, content string) (string, error) {
		return replaced(content, agent.Labels(blocks), a.Old, *a.New, func(content, old, text string) (string, error) {
			return memoryfile.ReplaceOnce(path, content, old, text)
		})
	})
}

func (m Memories) insertIntoMemory(ctx context.Context, at memoryfile.At, a memoryFilesArgs) (Result, error) {
	return m.editMemory(ctx, at, a, func(path, content string) (string, error) {
		return memoryfile.Insert(path, content, string(*a.InsertText), int(deref(a.Line, memoryfile.AtEnd)))
	})
}

// editMemory changes a file, and shows the changed lines with two lines before and after them.
func (m Memories) editMemory(ctx context.Context, target memoryfile.At, a memoryFilesArgs,
	edit func(path, content string) (string, error)) (Result, error) {
	before := ""
	c, err := m.MemoryFiles.Edit(ctx, target, string(a.Path), func(content string) (string, error) {
		before = content
		return edit(string(a.Path), content)
	})
	if err != nil {
		return Result{}, err
	}
	edited := memoryfile.Lines(c.File.Content)
	head := fmt.Sprintf("Edited %s (version %d, %s, %s)", c.File.Path, c.File.Version, count(len(edited), "line"),
		size(len(c.File.Content)))
	return withNotes(head+changedLines(memoryfile.Lines(before), edited), c.Notes), nil
}

func (m Memories) deleteMemory(ctx context.Context, at memoryfile.At, a memoryFilesArgs) (Result, error) {
	gone, notes, err := m.MemoryFiles.Delete(ctx, at, string(a.Path), "")
	return withNotes(fmt.Sprintf("Deleted %s.", someOf(gone)), notes), err
}

func (m Memories) renameMemory(ctx context.Context, at memoryfile.At, a memoryFilesArgs) (Result, error) {
	renamed, notes, err := m.MemoryFiles.Rename(ctx, at, string(a.OldPath), string(a.NewPath))
	return withNotes(fmt.Sprintf("Renamed %s to %s: now there is %s.", a.OldPath, a.NewPath, someOf(renamed)), notes), err
}

// someOf names at most 20 paths.
func someOf(paths []string) string {
	if n := len(paths) - 20; n > 0 {
		return joined(paths[:20]) + fmt.Sprintf(" and %d more", n)
	}
	return joined(paths)
}

// withNotes returns a result with notes for the model, one on each line.
func withNotes(text string, notes []string) Result {
	return Result{Text: strings.Join(append([]string{strings.TrimSuffix(text, "\n")}, notes...), "\n")}
}
