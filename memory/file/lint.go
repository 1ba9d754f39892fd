package file

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// Manifest returns the manifest of a tree. own is false if the tree has none; then it is the default manifest.
func (s *Store) Manifest(ctx context.Context, org db.Org, tree string) (m Manifest, own bool, err error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return m, false, err
	}
	return s.manifest(ctx, org, t)
}

// SetManifest writes the manifest of a tree.
func (s *Store) SetManifest(ctx context.Context, at At, m Manifest) (Changed, error) {
	if _, err := s.Tree(ctx, at.Org, at.Tree); err != nil {
		return Changed{}, err
	}
	if err := m.check(); err != nil {
		return Changed{}, err
	}
	return s.Write(ctx, at, ManifestPath, m.Render(), "")
}

// Lint reports the state of a tree.
type Lint struct {
	Files       int         `json:"files"`
	Bytes       int         `json:"bytes"`
	Index       string      `json:"index" doc:"Its path."`
	IndexChars  int         `json:"index_chars" doc:"0 if there is no index."`
	HasManifest bool        `json:"has_manifest"`
	Violations  []Violation `json:"violations" doc:"What the index breaks, also of rules that do not hold."`
	Unreachable []string    `json:"unreachable" doc:"Files that the index does not point to."`
	Uncovered   []string    `json:"uncovered" doc:"Files that no line of the manifest covers."`
	TooLong     []string    `json:"too_long" doc:"Files that are longer than the manifest allows."`
	Ended       []string    `json:"ended" doc:"Files that hold no longer, to which the index points."`
	Duplicates  []Duplicate `json:"duplicates" doc:"What two files say, apart from the index; 50 at most."`
}

// Lint examines a tree. It changes nothing.
func (s *Store) Lint(ctx context.Context, org db.Org, tree string) (l Lint, err error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return l, err
	}
	index, others, m, err := s.indexOf(ctx, org, t)
	hasIndex := err == nil
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return l, err
	}
	l = Lint{Index: t.Rules.index(), Violations: []Violation{}, Unreachable: []string{}, Uncovered: []string{},
		TooLong: []string{}, Ended: []string{}, Files: len(others), Bytes: index.SizeBytes,
		IndexChars: utf8.RuneCountInString(index.Content)}
	if hasIndex {
		l.Files++
		every := t.Rules
		every.Off = nil
		l.Violations = append(l.Violations, checkIndex(every, m, index.Content, others)...)
	}
	l.Duplicates = duplicatesIn(others)
	lines := readIndex(index.Content)
	for _, f := range others {
		l.Bytes += f.SizeBytes
		if f.Path == ManifestPath {
			l.HasManifest = true
			continue
		}
		l.add(f, m, pointedTo(lines, f.Path))
	}
	return l, nil
}

// Words returns what should be corrected, one sentence each.
func (l Lint) Words() (all []string) {
	if n := len(l.Violations); n > 0 {
		all = append(all, fmt.Sprintf("%s breaks %d of its rules; the first: %s.", l.Index, n, l.Violations[0]))
	}
	for _, kind := range []struct {
		says  string
		paths []string
	}{{l.Index + " does not point to", l.Unreachable}, {"The manifest does not cover", l.Uncovered},
		{"Longer than the manifest allows:", l.TooLong}, {"Ended, but " + l.Index + " points to", l.Ended}} {
		if n := len(kind.paths); n > 0 {
			text := kind.says + " " + strings.Join(kind.paths[:min(n, 10)], ", ")
			if n > 10 {
				text += fmt.Sprintf(" and %d more", n-10)
			}
			all = append(all, text+".")
		}
	}
	if n := len(l.Duplicates); n > 0 {
		d := l.Duplicates[0]
		all = append(all, fmt.Sprintf("%d facts stand in two files; the first: line %d of %s and line %d of %s.", n, d.Line,
			d.Path, d.OtherLine, d.OtherPath))
	}
	return all
}

// add adds the findings about a file.
func (l *Lint) add(f File, m Manifest, pointed bool) {
	if f.Ended {
		if pointed {
			l.Ended = append(l.Ended, f.Path)
		}
		return
	}
	if !pointed {
		l.Unreachable = append(l.Unreachable, f.Path)
	}
	e, covered := m.entry(f.Path)
	if !covered {
		l.Uncovered = append(l.Uncovered, f.Path)
	}
	if e.MaxChars > 0 && utf8.RuneCountInString(f.Content) > e.MaxChars {
		l.TooLong = append(l.TooLong, f.Path)
	}
}

// Index returns the index of an agent's tree, without lines that have only pointers to files outside their validity
// period. ErrNotFound if the agent has no tree, the tree has no index, or the index has ended.
func (s *Store) Index(ctx context.Context, org db.Org, agentID string) (File, error) {
	t, err := s.OfAgent(ctx, org, agentID)
	if err != nil {
		return File{}, err
	}
	f, err := db.One[File](ctx, s.db, `
		SELECT `+entryColumns+`, f.content, NULL::jsonb AS provenance FROM memory_files f
		WHERE f.org = $1 AND f.tree_key = $2 AND f.deleted_at IS NULL AND f.folded = $3`, org, t.Key, fold(t.Rules.index()))
	if err == nil && f.Ended {
		err = db.ErrNotFound
	}
	if err != nil {
		return f, db.OrNotFound(err, "the tree has no index")
	}
	f.Content, err = s.withoutEnded(ctx, org, t.Tree, f.Content)
	return f, err
}
