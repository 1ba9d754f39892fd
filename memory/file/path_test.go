package file_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	memoryfile "github.com/loci-memory/loci/memory/file"
)

func TestPathsOfATree(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"/memories":                      "/memories",
		"/memories/":                     "/memories",
		"/memories/a.md":                 "/memories/a.md",
		"/memories/a/":                   "/memories/a",
		"/memories/a b/c-d_e.f,g@h.md":   "/memories/a b/c-d_e.f,g@h.md",
		"/memories/Überblick/日本語.md":     "/memories/Überblick/日本語.md",
		"/memories/заметки/план.txt":     "/memories/заметки/план.txt",
		"/memories/a(1)[2]&'3'!#4=5+6.x": "/memories/a(1)[2]&'3'!#4=5+6.x",
	} {
		if got, err := memoryfile.ParsePath(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", given, got, err, want)
		}
	}
}

// hostile are paths that would leave the tree, that two programs may read as different files, or that look like another
// path.
var hostile = []string{
	"", "/", "memories", "memories/a", "/memoriesx", "/memories_evil/x", "/Memories/a", "/etc/passwd", "//memories/a",
	"/memories//a", "/memories/a//", "/memories/.", "/memories/..", "/memories/../etc/passwd", "/memories/a/../../b",
	"/memories/./a", "/memories/a/.", "/memories/...", "/memories/.hidden", "/memories/%2e%2e/b", "/memories/a%2fb",
	"/memories/..%2f", `/memories\a`, `/memories/a\..\b`, "/memories/C:/a", "/memories/~root", "/memories/a\x00b",
	"/memories/a\nb", "/memories/a\tb", "/memories/a\u202eb", "/memories/a\u200bb", "/memories/a\ufeff",
	"/memories/\uff0e\uff0e/b", "/memories/\u2024\u2024/b", "/memories/\u2025/b", "/memories/a\u2215b",
	"/memories/a\u2044b", "/memories/a\uff0fb", "/memories/a\u29f8b", "/memories/e\u0301", "/memories/\ufb01le",
	"/memories/\u2160", "/memories/a ", "/memories/ a", "/memories/a.", "/memories/a /b", "/memories/a\u00a0b",
	"/memories/\u0430bc", "/memories/M\u0395MORY.md", "/memories/a\ufe0f", "/memories/\u3164", "/memories/\xff",
	"/memories/a|b", "/memories/a*", "/memories/a?", "/memories/<value>", "/memories/\"a\"", "/memories/`a`",
	"/memories/a\u2028b", "/memories/😀", "/memories/a;b", "/memories/$HOME",
	"/memories/" + strings.Repeat("a", 256), "/memories" + strings.Repeat("/a", 17),
	"/memories/" + strings.Repeat("a/", 600),
}

func TestHostilePathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range hostile {
		if got, err := memoryfile.ParsePath(path); err == nil {
			t.Errorf("%q is accepted as %q", path, got)
		}
	}
	for _, path := range []string{"/memories", "/memories/", "/memories/a/"} {
		if got, err := memoryfile.ParseFile(path); err == nil {
			t.Errorf("%q is accepted as the file %q", path, got)
		}
	}
}

// An accepted path is below the root, and in its only form.
func FuzzParsePath(f *testing.F) {
	for _, path := range append(hostile, "/memories/a/b.md") {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := memoryfile.ParsePath(path)
		if err != nil {
			return
		}
		again, err := memoryfile.ParsePath(got)
		if err != nil || again != got {
			t.Errorf("%q becomes %q, and that %q, %v", path, got, again, err)
		}
		if got != memoryfile.Root && !strings.HasPrefix(got, memoryfile.Root+"/") || strings.HasSuffix(got, "/") {
			t.Errorf("%q becomes %q, which is not below the root", path, got)
		}
		if strings.ContainsAny(got, "\\%~:\x00\n\r") || !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
			t.Errorf("%q becomes %q", path, got)
		}
		for name := range strings.SplitSeq(got[1:], "/") {
			if name == "" || strings.HasPrefix(name, ".") {
				t.Errorf("%q becomes %q, with the name %q", path, got, name)
			}
		}
	})
}
