package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// How the lines of a grown index were sorted into files.
const (
	ByHeadings = "headings"
	ByModel    = "model"
)

// Topic says which lines of an index belong in a file. A model proposes the topics of an index.
type Topic struct {
	Path  string   `json:"path"`
	Title string   `json:"title"`
	Lines [][2]int `json:"lines"` // first and last line of each range, from 1
}

// Proposal is a change of a tree that turns a grown index into pointers. Nothing of it is done yet.
type Proposal struct {
	How        string         `json:"how" enum:"model,headings" doc:"What sorted the lines of the index into files."`
	Why        *string        `json:"why" doc:"Why no model sorted them; null if one did, or none is configured."`
	CharsNow   int            `json:"chars_now" doc:"Of the text that is compressed."`
	CharsThen  int            `json:"chars_then" doc:"Of the new index."`
	LinesMoved int            `json:"lines_moved" doc:"To the files, word for word."`
	Files      []ProposedFile `json:"files" doc:"With the index last. PUT …/files writes them all, or none."`
	Violations []Violation    `json:"violations" doc:"What the new index breaks still, also of rules that do not hold."`
}

// ProposedFile is a file as a proposal would have it.
type ProposedFile struct {
	NewFile
	Diff string `json:"diff" doc:"From the present text, as a unified diff."`
}

// NewFile is a text to write.
type NewFile struct {
	Path     string  `json:"path"`
	Content  string  `json:"content"`
	Expected *string `json:"expected_sha256,omitempty" required:"false" doc:"Of the present text; empty: there is none."`

	ExpectedVersion *int `json:"expected_version,omitempty" required:"false" minimum:"1" doc:"Of the present text."`
}

// WriteAll writes several files, all or none. The index rules are checked after all files are written. *MismatchError
// if a file does not have the expected text or version; ErrConflict if a file exists that is expected not to.
func (s *Store) WriteAll(ctx context.Context, at At, files []NewFile) (written []File, notes []string, err error) {
	if len(files) == 0 || len(files) > MaxFiles {
		return nil, nil, db.Invalid("files has %d files; it must have from 1 to %d", len(files), MaxFiles)
	}
	notes, err = s.change(ctx, at, func(e *editor) error {
		for i, f := range files {
			file, err := e.putExpected(ctx, f)
			if err != nil {
				return fmt.Errorf("files[%d]: %w", i, err)
			}
			written = append(written, file)
		}
		return nil
	})
	return written, notes, err
}

// putExpected is put for a file that may be expected not to exist.
func (e *editor) putExpected(ctx context.Context, f NewFile) (File, error) {
	path, err := ParseFile(f.Path)
	if err != nil {
		return File{}, err
	}
	expected := ""
	if f.Expected != nil {
		expected = *f.Expected
		if existing := e.find(path); expected == "" && existing != nil && existing.SHA256 != hashOf(db.Clean(f.Content)) {
			return File{}, db.Conflict("%s exists already; nothing was changed", path)
		}
	}
	if f.ExpectedVersion != nil {
		if err := e.expectVersion(ctx, path, f.Content, *f.ExpectedVersion); err != nil {
			return File{}, err
		}
	}
	return e.put(ctx, path, f.Content, expected)
}

// expectVersion returns *MismatchError unless the file is at the given version, or has the new text already.
// ErrNotFound if there is no file.
func (e *editor) expectVersion(ctx context.Context, path, content string, version int) error {
	f, err := e.store.file(ctx, e.at.Org, e.tree, path)
	if err == nil && f.Version != version && f.SHA256 != hashOf(db.Clean(content)) {
		err = &MismatchError{Current: f, Version: version}
	}
	return err
}

// errUndo rolls back the transaction of a change that was only tried.
var errUndo = errors.New("the change was tried")

// try returns the error that WriteAll would return. It changes nothing.
func (s *Store) try(ctx context.Context, at At, files []NewFile) error {
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		_, _, err := s.With(tx).WriteAll(ctx, at, files)
		return cmp.Or(err, errUndo)
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// Grown is an index with lines that are to be sorted into files.
type Grown struct {
	at       At
	tree     Tree
	manifest Manifest
	now      File   // the current index; empty if the tree has none
	text     string // the text to compress
	others   []File
	lines    []indexLine
	kept     []bool // for each line, whether it stays in the index
}

// Grown reads the index of a tree. If text is not nil, it uses text in place of the index. ErrNotFound if there is
// neither.
func (s *Store) Grown(ctx context.Context, at At, text *string) (*Grown, error) {
	t, err := s.Tree(ctx, at.Org, at.Tree)
	if err != nil {
		return nil, err
	}
	index, others, m, err := s.indexOf(ctx, at.Org, t)
	if err != nil && (text == nil || !errors.Is(err, db.ErrNotFound)) {
		return nil, err
	}
	whole := index.Content
	if text != nil {
		whole = db.Clean(*text)
	}
	if strings.TrimSpace(whole) == "" || len(whole) > MaxFileBytes {
		return nil, db.Invalid("the index has %d bytes; there is something to compress from 1 to %d bytes", len(whole),
			MaxFileBytes)
	}
	return newGrown(Grown{at: at, tree: t, manifest: m, now: index, others: others}, whole), nil
}

// newGrown reads a text as the index of a tree.
func newGrown(in Grown, text string) *Grown {
	in.text = lineFeeds(strings.ReplaceAll(text, "\r\n", "\n"))
	in.tree.Rules.Off = nil
	in.lines = readIndex(in.text)
	in.keep()
	return &in
}

// keep marks the lines that obey all rules and point somewhere. Of a list, no more lines stay than the rules allow.
func (g *Grown) keep() {
	g.kept = make([]bool, len(g.lines))
	c := &indexCheck{rules: g.tree.Rules, manifest: g.manifest, lines: g.lines, others: g.others}
	c.checkDuplicates()
	items := 0
	for i, l := range g.lines {
		c.checkLine(l)
		broken := slices.ContainsFunc(c.broken, func(v Violation) bool { return v.Line == l.number })
		points := len(l.pointers) > 0 && (l.item || l.row || l.plain)
		g.kept[i] = !broken && points && items < g.tree.Rules.maxListItems()
		switch {
		case l.item && g.kept[i]:
			items++
		case !l.item && (g.kept[i] || levelOf(l) > 0 && !broken):
			items = 0
		}
	}
	for i, l := range g.lines { // the head of a table stays with its rows
		if l.row && c.headOfTable(l) {
			end := i
			for end < len(g.lines) && g.lines[end].row {
				end++
			}
			g.kept[i] = slices.Contains(g.kept[i:end], true)
		}
	}
}

// Numbered returns the lines to be sorted, with their numbers.
func (g *Grown) Numbered() string {
	var b strings.Builder
	for i, l := range g.lines {
		if !g.kept[i] && strings.TrimSpace(l.text) != "" {
			fmt.Fprintf(&b, "%d\t%s\n", l.number, l.text)
		}
	}
	return b.String()
}

// Manifest returns the tree's manifest as agents read it.
func (g *Grown) Manifest() string { return g.manifest.Render() }

// Paths returns the paths of all files in the tree except the index.
func (g *Grown) Paths() (all []string) {
	for _, f := range g.others {
		all = append(all, f.Path)
	}
	return all
}

// Propose returns a change that moves the lines of a grown index, word for word, into files. Lines of topics go to the
// topics' files; the others are sorted by their headings. Propose tries the change on all rules of the tree. ErrInvalid
// if the index has nothing to move.
func (s *Store) Propose(ctx context.Context, g *Grown, topics []Topic) (p Proposal, err error) {
	w, err := g.sort(topics)
	if err != nil {
		return p, err
	}
	if p.Files, err = w.files(); err != nil {
		return p, err
	}
	index := p.Files[len(p.Files)-1].Content
	p.How, p.LinesMoved = ByHeadings, w.moved
	p.CharsNow, p.CharsThen = utf8.RuneCountInString(g.text), utf8.RuneCountInString(index)
	p.Violations = append([]Violation{}, checkIndex(g.tree.Rules, g.manifest, index, w.allOthers())...)
	var files []NewFile
	for _, f := range p.Files {
		files = append(files, f.NewFile)
	}
	return p, s.try(ctx, g.at, files)
}

// sort puts all lines that do not stay in the index into files. ErrInvalid if there are none.
func (g *Grown) sort(topics []Topic) (*sorting, error) {
	w := newSorting(g)
	for _, t := range topics {
		w.take(t)
	}
	for _, part := range g.parts(w.taken) {
		w.place(part)
	}
	if w.moved == 0 {
		return nil, db.Invalid("the index has no line to move: each points to a file that is there, and obeys the rules")
	}
	return w, nil
}
