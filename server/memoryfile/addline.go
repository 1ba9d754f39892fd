package memoryfile

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Place returns the path of the file where a line on something belongs, by what the manifest's entries hold. name takes
// the place of the * of an entry's path.
func (m Manifest) Place(about, name string) string {
	return named(m.place("", about), cmp.Or(slug(name), "other"))
}

// AddLine adds a line at the end of a file, which it creates with its name as the heading. A line that the file has
// already changes nothing.
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

// Point makes the index of a tree point to a file, under its heading of recent activity: as the newest entry, with a
// note. The index itself, and a file to which its newest entry points already, change nothing.
func (s *Store) Point(ctx context.Context, at At, file, note string) error {
	t, err := s.Tree(ctx, at.Org, at.Tree)
	if err != nil || t.Rules.IsIndex(file) {
		return err
	}
	entry := "- " + strings.TrimPrefix(file, Root+"/") + " (" + note + ")"
	_, err = s.changeFile(ctx, at, t.Rules.index(), func(e *editor, index string) (File, error) {
		lines := []string{"# Memory"}
		if e.find(index) != nil {
			f, err := e.store.file(ctx, at.Org, e.tree, index)
			if err != nil {
				return f, err
			}
			lines = Lines(f.Content)
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return l == entry })
		head := slices.IndexFunc(lines, recentHeading.MatchString)
		if head < 0 {
			lines = append(lines, "", "## Recent", "")
			head = len(lines) - 2
		}
		first := head + 1
		for first < len(lines) && strings.TrimSpace(lines[first]) == "" {
			first++
		}
		return e.put(ctx, index, strings.Join(slices.Insert(lines, first, entry), "\n")+"\n", "")
	})
	return err
}
