package files_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

func TestCompileInclude(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		include   string
		yes, none []string
	}{
		{"", []string{"docs/a.md"}, nil},
		{"report.md", []string{"docs/report.md", "docs/Old Report.MD.bak"}, []string{"docs/report_md"}},
		{"docs/", []string{"docs/a.md", "my docs/a.md"}, []string{"other/docs.md"}},
		{"*.py", []string{"src/a.py", "src/sub/A.PY"}, []string{"src/a.pyc", "src/a.py.md", "src/a_py"}},
		{"test?.txt", []string{"d/test1.txt"}, []string{"d/test.txt", "d/test12.txt"}},
		{"docs*", []string{"docs/a.md", "x/docs1.md"}, []string{"x/my docs.md"}},
		{"*guide*", []string{"guides/a.md", "x/my guide.md"}, []string{"x/y.md"}},
		{"docs/*", []string{"docs/a.md", "docs/sub/b.md", "x/docs/a.md"}, []string{"mydocs/a.md", "docs"}},
		{"docs/*.md", []string{"docs/a.md", "x/docs/a.md"}, []string{"docs/sub/a.md", "docs/a.txt"}},
		{"/docs/*.md", []string{"docs/a.md"}, []string{"x/docs/a.md"}},
		{"./docs/*.md", []string{"docs/a.md"}, []string{"docs/a.txt"}},
		{"**/x/*.go", []string{"f/x/a.go", "x/a.go", "f/g/x/a.go"}, []string{"f/x/y/a.go", "f/ax/a.go"}},
		{"docs/**/*.go", []string{"docs/a.go", "docs/b/c/a.go"}, []string{"doc/a.go"}},
		{"docs/**", []string{"docs/a.go", "docs/b/c/a.go"}, []string{"doc/a.go"}},
		{"*.{js,ts*}", []string{"a/b.js", "a/b.tsx"}, []string{"a/b.jsx", "a/b.go"}},
		{"src/*.{ts,tsx}", []string{"src/a.tsx"}, []string{"src/a.js"}},
		{"*.[ch]", []string{"a/b.c", "a/b.h"}, []string{"a/b.cc", "a/b.go"}},
		{`.*\.py$`, []string{"a/b.py"}, []string{"a/b.pyc"}},
		{"^docs/", []string{"docs/a.md"}, []string{"x/docs/a.md"}},
		{"a|b", []string{"x/a", "x/b"}, []string{"x/c"}},
		{"v[0-9]{2,3}", []string{"x/V12"}, []string{"x/v1"}},
		{"vo{2,3}", []string{"x/VOOO"}, []string{"x/vo"}},
		{`\Qa.b`, []string{"x/a.b"}, []string{"x/axb"}},
		{"(draft|final)", []string{"x/Final.md"}, []string{"x/f.md"}},
	} {
		fits, err := files.CompileInclude(tt.include)
		if err != nil {
			t.Errorf("CompileInclude(%q): %v", tt.include, err)
			continue
		}
		for _, name := range tt.yes {
			if !fits(name) {
				t.Errorf("%q leaves out %q", tt.include, name)
			}
		}
		for _, name := range tt.none {
			if fits(name) {
				t.Errorf("%q takes %q", tt.include, name)
			}
		}
	}
}

func TestCompileIncludeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ include, want string }{
		{"*(", "Invalid include \"*(\": error parsing regexp: "},
		{"a(b", "Invalid include \"a(b\": error parsing regexp: missing closing ): `a(b`. Use a glob such as *.md"},
		{"[z-a]*?*", "Invalid include \"[z-a]*?*\": it is neither a glob"},
		{strings.Repeat("a", 1001), "Invalid include: 1001 chars > 1000 limit"},
	} {
		if _, err := files.CompileInclude(tt.include); !errors.Is(err, db.ErrInvalid) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("CompileInclude(%.40q): %v, want ErrInvalid and %q", tt.include, err, tt.want)
		}
	}
}

func TestAnyIncludeIsReadOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		include := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c*?{},\[\]!/.^$()|+\\0-9-]{0,12}`)).Draw(t, "include")
		fits, err := files.CompileInclude(include)
		if err != nil {
			if !errors.Is(err, db.ErrInvalid) {
				t.Fatalf("CompileInclude(%q): %v, want ErrInvalid", include, err)
			}
			return
		}
		fits("docs/a/b.md")
	})
}
