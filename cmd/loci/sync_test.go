package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeTree writes files into a directory. An empty text deletes the file.
func writeTree(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What is left out of a mirrored directory is what git leaves out, what .lociignore says, and links that lead out.
func TestATreeHasWhatIsNotIgnored(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	writeTree(t, outside, map[string]string{"secret.md": "s"})
	writeTree(t, dir, map[string]string{".gitignore": "*.log\n/build/\n!keep.log\n# comment\n",
		"a.log": "x", "keep.log": "x",
		"build/x.md": "x", "sub/build/y.md": "x", "sub/.gitignore": "*.tmp\n!a.log\n", "sub/a.log": "x", "sub/b.tmp": "x",
		"b.tmp": "x", ".lociignore": "drafts/\n", "drafts/d.md": "x", ".git/config": "x", ".env.example": "x"})
	for link, target := range map[string]string{"in.md": "b.tmp", "out.md": filepath.Join(outside, "secret.md"),
		"outdir": outside, "indir": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found.files {
		names = append(names, f.name)
	}
	want := []string{".env.example", "b.tmp", "in.md", "keep.log", "sub/a.log", "sub/build/y.md"}
	if !slices.Equal(names, want) || len(found.faults) > 0 {
		t.Errorf("got %v, %v, want %v", names, found.faults, want)
	}
	if want := []string{"indir", "out.md", "outdir"}; !slices.Equal(found.skipped, want) {
		t.Errorf("skipped links: got %v, want %v", found.skipped, want)
	}
	writeTree(t, dir, map[string]string{"bad\nname.md": "x"})
	if found, err = readTree(dir); err != nil || len(found.faults) != 1 {
		t.Errorf("a name that cannot be stored: %v, %v", found.faults, err)
	}
	if _, err := readTree(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that is not there has no error")
	}
}

// A folder follows a directory: new and changed files are uploaded, moved ones keep their ids, and deletions follow
// only if that is asked for.
func TestAFolderFollowsADirectory(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	sync := func(wantCode int, flags ...string) (done syncDone) {
		t.Helper()
		code, out, errs := command(t, p.asking(append([]string{"sync", dir, "mirror", "--json"}, flags...)...)...)
		if code != wantCode || json.Unmarshal([]byte(out), &done) != nil {
			t.Fatalf("sync %v: ended with %d, want %d:\n%s%s", flags, code, wantCode, out, errs)
		}
		return done
	}
	ids := func() map[string]string {
		t.Helper()
		code, out, errs := command(t, p.asking("files", "list", "mirror", "--json")...)
		var all []struct {
			ID   string `json:"id"`
			Name string `json:"file_name"`
		}
		if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil {
			t.Fatalf("list: %v: %s%s", err, out, errs)
		}
		byName := map[string]string{}
		for _, f := range all {
			byName[f.Name] = f.ID
		}
		return byName
	}
	check := func(claim string, got, want syncDone) {
		t.Helper()
		want.FolderID, got.FolderID = "", ""
		for _, list := range []*[]string{&want.Uploaded, &want.Replaced, &want.Deleted, &want.Extra, &want.Skipped} {
			*list = append([]string{}, *list...)
		}
		want.Moved, want.Failed = append([][2]string{}, want.Moved...), append([]failure{}, want.Failed...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", claim, diff)
		}
	}
	writeTree(t, dir, map[string]string{"a.md": "one\n", "docs/b.md": "two\n", "docs/c.md": "three\n"})
	check("a dry run", sync(0, "--dry-run"), syncDone{DryRun: true, Uploaded: []string{"a.md", "docs/b.md", "docs/c.md"}})
	check("the first time", sync(0), syncDone{Uploaded: []string{"a.md", "docs/b.md", "docs/c.md"}})
	check("nothing changed", sync(0), syncDone{Unchanged: 3})
	before := ids()
	writeTree(t, dir, map[string]string{"a.md": "", "moved/a.md": "one\n", "docs/b.md": "two, changed\n", "docs/c.md": ""})
	moved := [][2]string{{"a.md", "moved/a.md"}}
	check("changes", sync(0), syncDone{Replaced: []string{"docs/b.md"}, Moved: moved, Extra: []string{"docs/c.md"}})
	if after := ids(); after["moved/a.md"] != before["a.md"] || after["docs/c.md"] == "" {
		t.Errorf("got %v, want the id of a.md in %v", after, before)
	}
	check("deletions in a dry run", sync(0, "--delete", "--dry-run"), syncDone{DryRun: true, Unchanged: 2,
		Deleted: []string{"docs/c.md"}})
	check("deletions", sync(0, "--delete"), syncDone{Unchanged: 2, Deleted: []string{"docs/c.md"}})
	writeTree(t, dir, map[string]string{"picture.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "e.md": "five\n"})
	if got := sync(1); len(got.Failed) != 1 || got.Failed[0].Name != "picture.png" || len(got.Uploaded) != 1 {
		t.Errorf("a file that is not read: %+v", got)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got := sync(1); !slices.Equal(got.Skipped, []string{"link"}) {
		t.Errorf("a link that leads out: %+v", got)
	}
	code, out, _ := command(t, p.asking("sync", dir, "mirror")...)
	const want = "skipped: link (a link that leads out of the directory, or to no file)\n" +
		"0 uploaded, 0 replaced, 0 moved, 0 deleted, 3 unchanged, 1 failed, 1 skipped\n"
	if code != 1 || !strings.HasSuffix(out, want) {
		t.Errorf("ended with %d: %s", code, out)
	}
}
