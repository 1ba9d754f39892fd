package file

import (
	"cmp"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Place returns the path of the file in which a line about something belongs, according to the manifest. If the path of
// the manifest's entry has a *, name replaces it.
func (m Manifest) Place(about, name string) string {
	return named(m.place("", about), cmp.Or(slug(name), "other"))
}

// AddLine adds a line at the end of a file. If there is no such file, it creates one, with the file's name as the
// heading. If the file has the line already, nothing changes.
func (s *Store) AddLine(ctx context.Context, at At, file, line string) error {
	_, err := s.changeFile(ctx, at, file, func(e *editor, file string) (File, error) {
		content := "# " + strings.TrimSuffix(path.Base(file), path.Ext(file)) + "\n\n"
		if e.find(file) != nil {
			f, err := e.store.file(ctx, at.Org, e.tree, file)
			if err != nil || slices.Contains(Lines(f.Content), line) {
				return f, err
			}
			if content = f.Content; content != "" && !strings.HasSuffix(content, "\n") {
				content += "\n"
			}
		}
		return e.put(ctx, file, content+line+"\n", "")
	})
	return err
}

var recentHeading = regexp.MustCompile(`(?i)^#{1,6}\s+recent`)

// Point adds a file to the index of a tree. The index gets a lasting pointer to the file, and a newest entry with a
// note under its heading of recent activity. Other files to which only that heading points get lasting pointers, too.
// If file is the index itself, nothing changes.
func (s *Store) Point(ctx context.Context, at At, file, note string) error {
	t, err := s.Tree(ctx, at.Org, at.Tree)
	if err != nil || t.Rules.IsIndex(file) {
		return err
	}
	_, err = s.changeFile(ctx, at, t.Rules.index(), func(e *editor, path string) (File, error) {
		index, others, m, err := e.store.indexOf(ctx, at.Org, e.tree)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return index, err
		}
		if index.Content == "" {
			index.Content = "# Memory\n"
		}
		c := &indexCheck{rules: e.tree.Rules, manifest: m, others: others}
		content := withRecent(index.Content, "- "+Pointer(strings.TrimPrefix(file, Root+"/"))+" ("+note+")")
		return e.put(ctx, path, c.reaching(content), "")
	})
	return err
}

// withRecent returns an index with entry as the newest entry of its recent activity.
func withRecent(content, entry string) string {
	lines := slices.DeleteFunc(Lines(content), func(l string) bool { return l == entry })
	head := slices.IndexFunc(lines, recentHeading.MatchString)
	if head < 0 {
		lines = append(lines, "", "## Recent", "")
		head = len(lines) - 2
	}
	first := head + 1
	for first < len(lines) && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	return strings.Join(slices.Insert(lines, first, entry), "\n") + "\n"
}
