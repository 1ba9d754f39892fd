package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/loci-memory/loci/files"
)

// ignoreFiles name files of a directory with patterns of what is left out of it and of the directories below. The later
// one wins.
var ignoreFiles = []string{".gitignore", ".lociignore"}

// treeFile is a file of a directory that is mirrored.
type treeFile struct {
	localFile // its name is clean, as the server stores it

	size    int64
	changed time.Time
	page    *webPage // nil for a file of a directory
}

// tree is a directory or a list of URLs that is mirrored.
type tree struct {
	root    string // of a directory, without links
	files   []treeFile
	faults  []failure       // what could not be read
	missing []failure       // what is not there, or may not be read, although it is listed
	skipped []string        // symbolic links that are left out, by their paths in the directory
	kept    map[string]bool // names of files that are not deleted
}

// readTree finds the files of a directory, ordered by name. It leaves out what .gitignore and .lociignore say, .git,
// and links that lead out of the directory or to other directories.
func readTree(dir string) (*tree, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, withoutPath(err))
	}
	t := &tree{root: root}
	if _, err := os.ReadDir(root); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, withoutPath(err))
	}
	t.walk(nil, nil)
	slices.SortFunc(t.files, func(a, b treeFile) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// walk reads the directory with these parts of a path. patterns are those of the directories above it.
func (t *tree) walk(parts []string, patterns []gitignore.Pattern) {
	dir := filepath.Join(append([]string{t.root}, parts...)...)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.fault(dir, err)
		return
	}
	for _, name := range ignoreFiles {
		more, err := ignorePatterns(filepath.Join(dir, name), parts)
		if err != nil {
			t.fault(filepath.Join(dir, name), err)
		}
		patterns = append(slices.Clip(patterns), more...)
	}
	matcher := gitignore.NewMatcher(patterns)
	for _, entry := range entries {
		below := append(slices.Clip(parts), entry.Name())
		switch {
		case entry.Name() == ".git", slices.Contains(ignoreFiles, entry.Name()), matcher.Match(below, entry.IsDir()):
		case entry.IsDir():
			t.walk(below, patterns)
		default:
			t.add(below)
		}
	}
}

func (t *tree) fault(path string, err error) {
	t.faults = append(t.faults, failure{path, withoutPath(err).Error()})
}

// ignorePatterns reads a file of patterns, which need not exist.
func ignorePatterns(path string, parts []string) (patterns []gitignore.Pattern, err error) {
	raw, err := os.ReadFile(path) // #nosec G304 -- the user names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, parts))
		}
	}
	return patterns, err
}

// add notes a file, if it is a regular one or a link to one within the tree.
func (t *tree) add(parts []string) {
	place := filepath.Join(append([]string{t.root}, parts...)...)
	target, err := filepath.EvalSymlinks(place)
	if err != nil {
		t.fault(place, err)
		return
	}
	isLink := target != place // no directory above it is a link
	if within, err := filepath.Rel(t.root, target); err != nil || !filepath.IsLocal(within) {
		t.skipped = append(t.skipped, path.Join(parts...))
		return
	}
	info, err := os.Stat(target)
	if err != nil {
		t.fault(place, err)
		return
	}
	if !info.Mode().IsRegular() {
		if isLink {
			t.skipped = append(t.skipped, path.Join(parts...))
		}
		return
	}
	written := path.Join(parts...)
	name, err := files.CleanPath(written)
	if err == nil {
		err = sendable(written)
	}
	if err != nil {
		t.fault(place, err)
		return
	}
	t.files = append(t.files, treeFile{localFile: localFile{path: target, name: name}, size: info.Size(),
		changed: info.ModTime()})
}

// hashOf returns the SHA-256 of a file's content, in hexadecimal digits.
func hashOf(ctx context.Context, path string) (string, error) {
	file, err := openFile(ctx, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
