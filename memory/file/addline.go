package file

import (
	"cmp"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// Place returns the path of the file in which a line about something belongs, according to the manifest. If the path of
// the manifest's entry has a *, name replaces it.
func (m Manifest) Place(about, name string) string {
	return named(m.place("", about), cmp.Or(slug(name), "other"))
}

// AddLine adds a line at the end of a file. If there is no such file, it creates one, with the file's name as the
// heading. If the file has the line already, nothing changes. Lines that it supersedes are taken out, unless the
// manifest says that the file is only added to; a nil function supersedes none.
func (s *Store) AddLine(ctx context.Context, at At, file, line string, supersedes func(line string) bool) error {
	_, err := s.changeFile(ctx, at, file, func(e *editor, file string) (File, error) {
		content := "# " + strings.TrimSuffix(path.Base(file), path.Ext(file)) + "\n\n"
		if e.find(file) != nil {
			f, err := e.store.file(ctx, at.Org, e.tree, file)
			lines := Lines(f.Content)
			if err != nil || slices.Contains(lines, line) {
				return f, err
			}
			if content = f.Content; content != "" && !strings.HasSuffix(content, "\n") {
				content += "\n"
			}
			if supersedes != nil && slices.ContainsFunc(lines, supersedes) {
				m, _, err := e.store.manifest(ctx, at.Org, e.tree)
				if err != nil {
					return f, err
				}
				shorter := strings.Join(slices.DeleteFunc(lines, supersedes), "\n") + "\n"
				if m.allows(file, content, shorter) == nil {
					content = shorter
				}
			}
		}
		return e.put(ctx, file, content+line+"\n", "")
	})
	return err
}

var recentHeading = regexp.MustCompile(`(?i)^#{1,6}\s+recent`)

// Recent is what an entry of an index's recent activity says.
type Recent struct {
	Day  string // 2006-01-02
	Says string // what happened; may be empty
}

// leastSaid is the number of characters of what happened below which an entry leaves it out.
const leastSaid = 20

// entry returns the line that points to a file. It is no longer than the rules of an index allow.
func (r Recent) entry(pointer string) string {
	room := maxInlineChars - utf8.RuneCountInString("- "+r.Day+":  ("+pointer+")")
	if r.Says == "" || room < leastSaid {
		return "- " + pointer + " (" + r.Day + ")"
	}
	return "- " + r.Day + ": " + db.Beginning(r.Says, room) + " (" + pointer + ")"
}

// Point adds a file to the index of a tree. The index gets a lasting pointer to the file, and a newest entry under its
// heading of recent activity, in place of one of the same day for the same file. Other files to which only that heading
// points get lasting pointers, too. If file is the index itself, nothing changes.
func (s *Store) Point(ctx context.Context, at At, file string, r Recent) error {
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
		pointer := Pointer(strings.TrimPrefix(file, Root+"/"))
		return e.put(ctx, path, c.reaching(withRecent(index.Content, r.entry(pointer), func(l string) bool {
			return strings.HasPrefix(l, "- "+r.Day+": ") && strings.HasSuffix(l, " ("+pointer+")")
		})), "")
	})
	return err
}

// withRecent returns an index with entry as the newest entry of its recent activity, in place of those that it
// replaces.
func withRecent(content, entry string, replaces func(line string) bool) string {
	lines := slices.DeleteFunc(Lines(content), func(l string) bool { return l == entry || replaces(l) })
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
