package file

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// manifest returns the manifest of a tree. own is false if the tree has none; then it is the default manifest.
func (s *Store) manifest(ctx context.Context, org db.Org, t Tree) (m Manifest, own bool, err error) {
	f, err := s.file(ctx, org, t, ManifestPath)
	if errors.Is(err, db.ErrNotFound) {
		return defaultManifest, false, nil
	}
	if err == nil {
		m, err = ParseManifest(f.Content)
	}
	return m, true, err
}

// obey returns the text of a file after applying the rules of the tree. ErrInvalid if the rules refuse it.
func (e *editor) obey(ctx context.Context, path, content string) (string, error) {
	if e.change == redacted {
		return content, nil
	}
	if fold(path) == fold(ManifestPath) {
		return content, e.obeyManifest(path, content)
	}
	m, stored, err := e.store.manifest(ctx, e.at.Org, e.tree)
	if err != nil {
		return "", err
	}
	before := ""
	if e.find(path) == nil {
		if err := e.mustBeNoDirectory(path, m); err != nil {
			return "", err
		}
	} else {
		f, err := e.store.file(ctx, e.at.Org, e.tree, path)
		if err != nil {
			return "", err
		}
		before = f.Content
	}
	if e.tree.Rules.IsIndex(path) && !slices.Contains(e.tree.Rules.Off, "*") {
		if lines := lineFeeds(content); lines != content {
			e.note("Other characters ended lines of %s: they are line feeds now.", path)
			content = lines
		}
	}
	if e.tree.Rules.IsIndex(path) && e.tree.Rules.holds(ruleList) {
		content = e.roll(before, content)
	}
	if !stored {
		return content, nil
	}
	if _, known := m.entry(path); !known && e.find(path) == nil {
		e.note("No line of %s covers %s: it may belong in another file.", ManifestPath, path)
	}
	return content, m.allows(path, before, content)
}

// mustBeNoDirectory returns ErrInvalid if a new path is below the manifest, the index, or a file that the manifest
// names, because that file could then never be created.
func (e *editor) mustBeNoDirectory(path string, m Manifest) error {
	files := []string{ManifestPath, e.tree.Rules.index()}
	for _, entry := range m.Entries {
		if !strings.Contains(entry.Path, "*") {
			files = append(files, entry.Path)
		}
	}
	for _, file := range files {
		if fold(path) != fold(file) && within(fold(path), fold(file)) {
			return db.Invalid("%s is the path of a file, so that nothing can be in it; nothing was changed", file)
		}
	}
	return nil
}

func (e *editor) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

// obeyManifest returns ErrInvalid if an agent writes the manifest, or if the text is not a manifest.
func (e *editor) obeyManifest(path, content string) error {
	if e.at.Author.AgentID != "" {
		return db.Invalid("%s is the operator's: read it, and write other files; nothing was changed", ManifestPath)
	}
	if path != ManifestPath {
		return db.Invalid("the manifest is the file %s, in this case", ManifestPath)
	}
	_, err := ParseManifest(content)
	return err
}

var anyDay = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)

// roll shortens lists of recent activity in the index that are too long, by dropping the oldest entries. Where the
// newest entry is first, the oldest are at the end, otherwise at the beginning. The entries' dates tell the order;
// without dates, the list counts as newest first if its first line is new.
func (e *editor) roll(before, content string) string {
	lines := readIndex(content)
	dropped := map[int]bool{}
	for start := 0; start < len(lines); start++ {
		if !lines[start].item || !recentSection.MatchString(lines[start].section) {
			continue
		}
		end := start
		for end < len(lines) && lines[end].item {
			end++
		}
		over := end - start - e.tree.Rules.maxListItems()
		newestFirst := !slices.Contains(Lines(before), lines[start].text)
		if first, last := anyDay.FindString(lines[start].text), anyDay.FindString(lines[end-1].text); first != last &&
			first != "" && last != "" {
			newestFirst = first > last
		}
		for i := range max(over, 0) {
			dropAt := start + i
			if newestFirst {
				dropAt = end - 1 - i
			}
			dropped[dropAt] = true
			e.note("The list of recent activity keeps %d entries: dropped %q.", e.tree.Rules.maxListItems(),
				strings.TrimSpace(lines[dropAt].text))
		}
		start = end
	}
	if len(dropped) == 0 {
		return content
	}
	var kept []string
	for i, l := range lines {
		if !dropped[i] {
			kept = append(kept, l.text)
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

// checkIndex returns ErrInvalid if a change makes the index break a rule.
func (e *editor) checkIndex(ctx context.Context) error {
	i := slices.IndexFunc(e.files, func(f Entry) bool { return e.tree.Rules.IsIndex(f.Path) })
	if i < 0 || e.change == redacted || !slices.Contains(e.ids, e.files[i].ID) && len(e.removed) == 0 {
		return nil
	}
	if len(e.removed) > 0 {
		return e.checkRemoved(ctx, e.files[i].Path)
	}
	index, others, m, err := e.store.indexOf(ctx, e.at.Org, e.tree)
	if err != nil {
		return err
	}
	if broken := checkIndex(e.tree.Rules, m, index.Content, others); len(broken) > 0 {
		return refusal(index.Path, broken)
	}
	return nil
}

// indexOf returns the index of a tree, the tree's other files without the manifest, and the manifest. ErrNotFound if
// the tree has no index.
func (s *Store) indexOf(ctx context.Context, org db.Org, t Tree) (index File, others []File, m Manifest, err error) {
	if m, _, err = s.manifest(ctx, org, t); err != nil {
		return index, nil, m, err
	}
	all, err := db.All[File](ctx, s.db, selectFiles, org, t.Key)
	for _, f := range all {
		if t.Rules.IsIndex(f.Path) {
			index = f
		} else {
			others = append(others, f)
		}
	}
	if err == nil && index.ID == "" {
		err = db.NotFound("the tree has no index: %s does not exist", t.Rules.index())
	}
	return index, others, m, err
}

// checkRemoved returns ErrInvalid if the index points to a removed file.
func (e *editor) checkRemoved(ctx context.Context, index string) error {
	if !e.tree.Rules.holds(ruleDangling) {
		return nil
	}
	f, err := e.store.file(ctx, e.at.Org, e.tree, index)
	if err != nil {
		return err
	}
	for _, l := range readIndex(f.Content) {
		for _, p := range l.pointers {
			if slices.ContainsFunc(candidates(p), func(path string) bool { return slices.Contains(e.removed, path) }) {
				return db.Invalid("line %d of %s points to %s; nothing was changed. Take the pointer out of the index first",
					l.number, index, p)
			}
		}
	}
	return nil
}

// repoint changes the index's pointers after a file or directory was renamed.
func (e *editor) repoint(ctx context.Context, from, to string) error {
	i := slices.IndexFunc(e.files, func(f Entry) bool { return e.tree.Rules.IsIndex(f.Path) })
	if i < 0 {
		return nil
	}
	index, err := e.store.file(ctx, e.at.Org, e.tree, e.files[i].Path)
	if err != nil {
		return err
	}
	lines := strings.Split(index.Content, "\n")
	for n, line := range lines {
		lines[n] = repointed(line, from, to)
		if lines[n] != line {
			e.note("Line %d of %s points to the new path now.", n+1, index.Path)
		}
	}
	if content := strings.Join(lines, "\n"); content != index.Content {
		_, err = e.write(ctx, e.files[i], index.Path, content)
	}
	return err
}

// maxTouched is how many files an agent may change in a conversation before it is told to look at them again.
const maxTouched = 3

// noteTouched tells an agent which files it has changed in this conversation since it last changed the index, if they
// are many.
func (e *editor) noteTouched(ctx context.Context) error {
	if e.at.Author.AgentID == "" {
		return nil
	}
	paths, err := db.All[string](ctx, e.store.db, `
		WITH mine AS (
			SELECT f.path, f.folded, max(v.at) AS at FROM memory_files f
			JOIN memory_file_versions v ON v.org = f.org AND v.file_key = f.key
			WHERE f.org = $1 AND v.org = $1 AND f.tree_key = $2 AND f.deleted_at IS NULL AND v.change <> 'renamed'
			  AND v.author ->> 'agent_id' = $3 AND coalesce(v.author ->> 'conversation_id', '') = $4
			  AND v.at > now() - interval '1 day'
			GROUP BY f.path, f.folded
		)
		SELECT path FROM mine
		WHERE folded <> $5 AND at > coalesce((SELECT at FROM mine WHERE folded = $5), '-infinity')
		ORDER BY path`, e.at.Org, e.tree.Key, e.at.Author.AgentID, e.at.Author.ConversationID, fold(e.tree.Rules.index()))
	if err == nil && len(paths) > maxTouched {
		e.note("You have changed %d files here since %s: %s. Look at them: is each fact in the file where it belongs, and "+
			"does the index point to each file?", len(paths), e.tree.Rules.index(),
			strings.Join(paths[:min(len(paths), 10)], ", "))
	}
	return err
}
