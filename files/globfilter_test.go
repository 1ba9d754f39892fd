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
		{"vo{3,2}*", []string{"x/vo3.md", "x/VO2"}, []string{"x/vo4"}},
		{`\Qa.b`, []string{"x/a.b"}, []string{"x/axb"}},
		{"(draft|final)", []string{"x/Final.md"}, []string{"x/f.md"}},
		{"plan_(1).md", []string{"docs/plan_(1).md", "docs/notes/Plan_(1).MD"},
			[]string{"docs/my plan_(1).md", "docs/plan.md"}},
		{"docs/a[1].txt", []string{"docs/a[1].txt", "x/docs/a[1].txt"}, []string{"docs/a[2].txt", "mydocs/a[1].txt"}},
		{"cost $5 ^2.md", []string{"x/cost $5 ^2.md"}, []string{"x/cost.md"}},
		{"why?.md", []string{"x/why?.md", "x/whys.md"}, []string{"x/why.md"}},
		{"2*3.md", []string{"x/2*3.md", "x/2 times 3.md"}, []string{"x/23.txt"}},
		{"caf\u00e9*", []string{"d/caf\u00e9.md", "d/cafe\u0301.md"}, []string{"d/cafe.md"}},
		{"CAFE\u0301.md", []string{"d/caf\u00e9.md", "d/cafe\u0301.md"}, []string{"d/cafe.md"}},
		{"^cafe\u0301/", []string{"caf\u00e9/a.md", "cafe\u0301/a.md"}, []string{"d/a.md"}},
		{"mu\u0308?.txt", []string{"d/m\u00fc\u00e9.txt", "d/mu\u0308e\u0301.txt"}, []string{"d/mue.txt"}},
		{"[q]*", []string{"d/q", "d/Quo'te.txt"}, []string{"q/a.txt", "d/a.txt", "d/aq.txt"}},
		{"[a-c]*", []string{"d/a", "d/cz.txt"}, []string{"a/d.txt", "d/dc.txt"}},
		{"Glob2/[a-c]*", []string{"glob2/b.txt"}, []string{"glob2/d.txt", "other/b.txt"}},
		{"[q]?.txt", []string{"d/qz.txt"}, []string{"d/q.txt", "d/az.txt"}},
		{"[!a]*.txt", []string{"d/b1.txt"}, []string{"d/a1.txt", "d/b.md"}},
		{"[^a]*.txt", []string{"d/b1.txt"}, []string{"d/a1.txt", "d/b.md"}},
		{"v[0-9]*", []string{"d/v1.md"}, []string{"d/va.md", "d/av1.md"}},
		{"report[12]", []string{"d/my report1.md"}, []string{"d/report3.md"}},
		{"[a-c].*[0-9]", []string{"d/xa-9.md"}, []string{"d/x9.md"}},
		{"[0-9]+", []string{"d/a9.md"}, []string{"d/a.md"}},
		{`[\w]*-x`, []string{"d/a-x"}, []string{"d/ax"}},
		{"[[:alpha:]]9", []string{"d/a9"}, []string{"d/99"}},
		{"./a1.txt", []string{"d/a1.txt"}, []string{"d/b1.txt"}},
		{"{a,b}{c,d}/*.md", []string{"ac/x.md", "BD/x.md"}, []string{"ab/x.md"}},
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
		{`["*.txt","*.md"]`, "Invalid include \"[\\\"*.txt\\\",\\\"*.md\\\"]\": it is a text, not a list. Ask for"},
		{"[*.txt, *.md]", "Invalid include \"[*.txt, *.md]\": it is a text, not a list."},
		{"*(", "Invalid include \"*(\": error parsing regexp: "},
		{"a(b", "Invalid include \"a(b\": error parsing regexp: missing closing ): `a(b`. Use a glob such as *.md"},
		{"[z-a]*?*", "Invalid include \"[z-a]*?*\": it is neither a glob"},
		{"notes {draft", "Invalid include \"notes {draft\": it is neither a glob"},
		{strings.Repeat("{a,a}", 30) + "x", "Invalid include \"{a,a}"},
		{strings.Repeat("a", 1001), "Invalid include: 1001 chars > 1000 limit"},
	} {
		if _, err := files.CompileInclude(tt.include); !errors.Is(err, db.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("CompileInclude(%.40q): %v, want ErrInvalid and %q", tt.include, err, tt.want)
		}
	}
}

// A name that is no valid pattern is matched literally. Only if no file has that name does the error say what is wrong
// with the pattern.
func TestALiteralNameIsIncludedWhateverItIsMadeOf(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	names := []string{"plan_(1).md", "C++ notes.md", "a[1].txt", "cost $5.md", "what?.md", "2*3.md", "a(b.md", "{draft.md"}
	for _, name := range names {
		fx.store(folder, name, "the needle\n")
	}
	agent := fx.agentWith(folder)
	for _, name := range names {
		if got := fx.grep(agent, files.GrepQuery{Pattern: "needle", Include: name}); got.Total != 1 ||
			got.Files[0].FileName != "f/"+name {
			t.Errorf("grep in %s: %+v", name, got.Files)
		}
		if got, err := fx.List(t.Context(), fx.org, files.Of(agent),
			files.ListQuery{Include: "f/" + name, Limit: 9}); err != nil ||
			got.Total != 1 || got.Files[0].FileName != "f/"+name {
			t.Errorf("list of f/%s: %+v (%v)", name, got, err)
		}
		if got, err := fx.Search(t.Context(), fx.org, files.Of(agent),
			files.Query{Text: "needle", Include: name}); err != nil ||
			!got.Attached {
			t.Errorf("search in %s: %+v (%v)", name, got, err)
		}
	}
	for _, wrong := range []string{"a(c.md", "{final.md", "D++ notes.md"} {
		if _, err := fx.Grep(t.Context(), fx.org, files.Of(agent),
			files.GrepQuery{Pattern: "needle", Include: wrong}); !errors.Is(err,
			db.ErrInvalid) {
			t.Errorf("grep in %s: %v, want ErrInvalid", wrong, err)
		}
		if _, err := fx.List(t.Context(), fx.org, files.Of(agent), files.ListQuery{Include: wrong, Limit: 9}); !errors.Is(err,
			db.ErrInvalid) {
			t.Errorf("list of %s: %v, want ErrInvalid", wrong, err)
		}
	}
}

// A letter with a mark is one character or two. Searches treat both forms alike.
func TestNamesAreFoundInEitherCanonicalForm(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	first, second := fx.folder(composed), fx.folder(decomposed+" 2")
	for _, folder := range []files.Folder{first, second} {
		fx.upload(folder, "re\u0301sume\u0301.txt", "the needle\n")
	}
	agent := fx.agentWith(first, second)
	for _, include := range []string{composed + "/*", decomposed + "/*", "^" + decomposed + "/", "/cafe\u0301 2/re\u0301*",
		"/caf\u00e9 2/*.txt"} {
		if got := fx.grep(agent, files.GrepQuery{Pattern: "needle", Include: include}); got.Total != 1 {
			t.Errorf("grep in %+q: %+v", include, got.Files)
		}
		if got, err := fx.List(t.Context(), fx.org, files.Of(agent),
			files.ListQuery{Include: include, Limit: 9}); err != nil ||
			got.Total != 1 {
			t.Errorf("list of %+q: %+v (%v)", include, got, err)
		}
		if got, err := fx.Search(t.Context(), fx.org, files.Of(agent),
			files.Query{Text: "needle", Include: include}); err != nil ||
			len(got.Hits) != 1 {
			t.Errorf("search in %+q: %+v (%v)", include, got.Hits, err)
		}
	}
	for _, folder := range []string{composed, decomposed, composed + " 2", decomposed + " 2"} {
		for _, include := range []string{"", "*.txt"} {
			q := files.ListQuery{Folder: folder, Include: include, Limit: 9}
			if got, err := fx.List(t.Context(), fx.org, files.Of(agent),
				q); err != nil || got.Total != 1 || len(got.Files) != 1 {
				t.Errorf("list of the folder %+q: %+v (%v)", folder, got, err)
			}
		}
		for _, name := range []string{"r\u00e9sum\u00e9.txt", "re\u0301sume\u0301.txt"} {
			fx.mustOpen(agent, files.Limits{MaxOpen: 3, ViewChars: 1000}, false, folder+"/"+name)
		}
	}
}

// A list of patterns with commas matches no file. The hint shows the pattern that would.
func TestAListOfPatternsIsHintedAt(t *testing.T) {
	t.Parallel()
	for include, want := range map[string]string{"*.txt,*.md": "{*.txt,*.md}", "a.txt, docs/b.md ,": "{a.txt,docs/b.md}",
		"*.md": "", "*.{txt,md}": "", "a,": "", "(a,b)": ""} {
		got := files.IncludeHint(include)
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want a hint at %q", include, got, want)
		}
		if want == "" {
			continue
		}
		fits, err := files.CompileInclude(want)
		if err != nil || !fits("x/docs/b.md") || !fits("x/a.txt") || fits("x/c.go") {
			t.Errorf("the filter %s does not take the files that %s names: %v", want, include, err)
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

// The database first looks for the literal text of an include; then the include itself is tried.
func TestNamesHaveTheLiteralOfTheirInclude(t *testing.T) {
	t.Parallel()
	for include, want := range map[string]string{
		"*.md": ".md", "docs/*.go": "doc", "./a*": "a", "Report*": "report", "*.{js,go}": "", "^docs/": "", "*": "", "": "",
		"kiss": "",
	} {
		if got := files.LiteralOf(include); got != want {
			t.Errorf("%s: got '%s', want '%s'", include, got, want)
		}
	}
	text := rapid.StringOfN(rapid.SampledFrom([]rune("abAB.*?/-{},kKsSſK_e\u0301é;\u037e`\u1fef")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		include := text.Draw(t, "include")
		name := text.Draw(t, "folder") + "/" + rapid.OneOf(text, rapid.Just(include)).Draw(t, "name")
		accepts, err := files.CompileInclude(include)
		if err == nil && accepts(name) && !strings.Contains(strings.ToLower(name), files.LiteralOf(include)) {
			t.Errorf("%s accepts %s, which lacks '%s'", include, name, files.LiteralOf(include))
		}
	})
}
