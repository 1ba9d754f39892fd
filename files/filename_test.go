package files_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

func TestCleanName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, tt := range []struct{ name, raw, want string }{
		{"a plain name stays", "report.md", "report.md"},
		{"only the last part of a path counts", "/home/ann/report.md", "report.md"},
		{"a Windows path is a path too", `C:\Users\ann\report.md`, "report.md"},
		{"a slash at the end is not a name", "dir/report.md/", "report.md"},
		{"parents in front are dropped", "../../etc/passwd", "passwd"},
		{"dot-files are names", ".gitignore", ".gitignore"},
		{"three dots are a name", "...", "..."},
		{"control characters go", "re\x00po\nrt\x1b.md", "report.md"},
		{"line and paragraph separators go", "re\u2028port\u2029.md", "report.md"},
		{"bidirectional overrides go", "invoice\u202Efdp.exe", "invoicefdp.exe"},
		{"zero-width characters go", "\ufeffre\u200bport.md", "report.md"},
		{"joiners stay", "family \U0001f468\u200d\U0001f469.txt", "family \U0001f468\u200d\U0001f469.txt"},
		{"blanks inside stay, at the ends go", " \tmy report.md\u00a0 ", "my report.md"},
		{"decomposed letters are composed", "re\u0301sume\u0301.txt", "r\u00e9sum\u00e9.txt"},
		{"broken UTF-8 is repaired", "caf\xe9.txt", "caf\ufffd.txt"},
		{"nothing is upload", "", "upload"},
		{"blanks are nothing", " \t ", "upload"},
		{"slashes are nothing", "///", "upload"},
		{"control characters are nothing", "\x00\x01", "upload"},
		{"a long name is cut before its extension", long + ".tar.gz", long[:252] + ".gz"},
		{"an endless extension is no extension", "a." + long, "a." + long[:253]},
		{"characters are counted, not bytes", strings.Repeat("é", 255), strings.Repeat("é", 255)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := files.CleanName(tt.raw); err != nil || got != tt.want {
				t.Errorf("CleanName(%q) = %q, %v, want %q", tt.raw, got, err, tt.want)
			}
		})
	}
}

func TestNamesOfDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{".", "..", "a/..", `a\..`, " .. ", ".\x00.", ".\u200b"} {
		if got, err := files.CleanName(raw); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("CleanName(%q) = %q, %v, want ErrInvalid", raw, got, err)
		}
	}
	for _, raw := range []string{".", "a/../b", "./a", `a\.\b`, "a/ .. /b", "", "//", " / ", strings.Repeat("a", 256),
		strings.Repeat("a/", 200)} {
		if got, err := files.CleanPath(raw); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("CleanPath(%q) = %q, %v, want ErrInvalid", raw, got, err)
		}
	}
}

func TestCleanPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"a plain name stays", "report.md", "report.md"},
		{"slashes make folders", "a/b/report.md", "a/b/report.md"},
		{"backslashes are slashes", `a\b\report.md`, "a/b/report.md"},
		{"empty parts are dropped", "//a// /b.md/", "a/b.md"},
		{"each part is cleaned", " a\x00 / b\u202e.md ", "a/b.md"},
		{"dot-files are names", "home/.env", "home/.env"},
		{"255 characters are allowed", strings.Repeat("ü", 255), strings.Repeat("ü", 255)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := files.CleanPath(tt.raw); err != nil || got != tt.want {
				t.Errorf("CleanPath(%q) = %q, %v, want %q", tt.raw, got, err, tt.want)
			}
		})
	}
}

func TestSuffixed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		raw  string
		n    int
		want string
	}{
		{"test.txt", 1, "test_(1).txt"},
		{"test.txt", 12, "test_(12).txt"},
		{"test", 1, "test_(1)"},
		{"a.tar.gz", 1, "a.tar_(1).gz"},
		{".env", 1, ".env_(1)"},
		{".env.local", 1, ".env_(1).local"},
		{"a.b/c", 1, "a.b/c_(1)"},
		{"a/.env", 2, "a/.env_(2)"},
		{long[:251] + ".txt", 1, long[:247] + "_(1).txt"},
		{long[:248] + "/abcdef", 1, long[:248] + "/ab_(1)"},
		{long[:252] + "/a", 1, long[:251] + "_(1)"},
	} {
		if got := files.Suffixed(tt.raw, tt.n); got != tt.want {
			t.Errorf("Suffixed(%q, %d) = %q, want %q", tt.raw, tt.n, got, tt.want)
		}
	}
}

// anyName draws names with difficult characters.
func anyName() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z./\\ ]{0,12}`),
		rapid.SampledFrom([]string{"..", ".", "/", `\`, "\u202e", "e\u0301", "\xff", "\x00", " ", strings.Repeat("long", 70),
			"\u200d", "\u1fef"}))
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") })
}

func checkClean(t *rapid.T, name, raw string) {
	t.Helper()
	switch {
	case name == "" || utf8.RuneCountInString(name) > files.NameChars:
		t.Fatalf("%q became %q: %d characters", raw, name, utf8.RuneCountInString(name))
	case !utf8.ValidString(name) || !norm.NFC.IsNormalString(name):
		t.Fatalf("%q became %q: not valid UTF-8 in normal form C", raw, name)
	case strings.ContainsFunc(name, unicode.IsControl) ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		t.Fatalf("%q became %q: control characters", raw, name)
	case strings.Contains(name, `\`) || strings.TrimSpace(name) != name:
		t.Fatalf("%q became %q: backslash or outer blanks", raw, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			t.Fatalf("%q became %q: part %q", raw, name, part)
		}
	}
}

func TestCleanNamesStayClean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw, n := anyName().Draw(t, "raw"), rapid.IntRange(1, 99999).Draw(t, "n")
		for _, clean := range []func(string) (string, error){files.CleanName, files.CleanPath} {
			name, err := clean(raw)
			if err != nil {
				continue
			}
			checkClean(t, name, raw)
			if again, err := clean(name); err != nil || again != name {
				t.Fatalf("clean(%q) = %q, %v: a clean name must stay as it is", name, again, err)
			}
			other, next := files.Suffixed(name, n), files.Suffixed(name, n+1)
			checkClean(t, other, name)
			if other == name || other == next || !strings.Contains(other, fmt.Sprintf("_(%d)", n)) {
				t.Fatalf("Suffixed(%q, %d) = %q, next %q", name, n, other, next)
			}
		}
	})
}
