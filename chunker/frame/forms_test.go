package frame_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/chunker/frame"
)

// literals yields the string literals in a package's source, and their places.
func literals(t *testing.T, folder string, yield func(place, text string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the sources of %s: %d, %v", folder, len(files), err)
	}
	set := token.NewFileSet()
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			// A regular expression is no frame, nor is an error.
			if call, ok := n.(*ast.CallExpr); ok {
				f, _ := call.Fun.(*ast.SelectorExpr)
				return f == nil || f.Sel.Name != "MustCompile" && f.Sel.Name != "Invalid"
			}
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				yield(set.Position(l.Pos()).String(), text)
			}
			return true
		})
	}
}

// forms maps names to notices: all exported notices of frame.go.
func forms(t *testing.T) map[string]string {
	t.Helper()
	source, err := os.ReadFile("frame.go")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range file.Decls {
		list, ok := d.(*ast.GenDecl)
		if !ok || list.Tok != token.CONST {
			continue
		}
		for _, spec := range list.Specs {
			value := spec.(*ast.ValueSpec)
			all[value.Names[0].Name] = text(t, value.Values[0])
		}
	}
	delete(all, "LineEnds")
	if len(all) < 40 {
		t.Fatalf("the list has %d notices", len(all))
	}
	return all
}

// Each exported notice is marked in a text that contains it, and Restore returns the text.
func TestEachNoticeIsMarked(t *testing.T) {
	t.Parallel()
	filled := strings.NewReplacer("%d", "12", "%s", " x", "%q", `"x"`)
	for name, form := range forms(t) {
		notice := filled.Replace(form)
		bracket := strings.IndexAny(notice, "[(#") + 1
		marked := notice[:bracket] + "~" + notice[bracket:]
		for _, before := range []string{"", "a\n", "a\r", "a\x1c", "a\x1d \t", "a\x1e", "a\v", "a\f", "a\u0085", "a\u2028",
			"a\u2029"} {
			got := frame.Neutralize(before + notice)
			if got != before+marked || frame.Restore(got) != before+notice {
				t.Errorf("%s: %q is shown as %q, want %q, and read as %q", name, before+notice, got, before+marked,
					frame.Restore(got))
			}
		}
	}
}

// text returns the value of a constant string or a sum of strings.
func text(t *testing.T, expr ast.Expr) string {
	t.Helper()
	switch expr := expr.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(expr.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return text(t, expr.X) + text(t, expr.Y)
	}
	t.Fatalf("%T is no string", expr)
	return ""
}

func TestEachTagIsMarked(t *testing.T) {
	t.Parallel()
	for _, name := range frame.Tags {
		for _, tag := range []string{name + ">", "/" + name + ">", name + ` status="x">`, " / " + name + " >"} {
			if got := frame.Neutralize("a <" + tag); got != "a <~"+tag || frame.Restore(got) != "a <"+tag {
				t.Errorf("<%s is shown as %q, and read as %q", tag, got, frame.Restore(got))
			}
		}
	}
}

// writers are the packages that write what a model reads.
var writers = []string{"archival", "compaction", "compaction/policy", "files", "files/grep", "recall", "recall/chat",
	"agent", "memory/block", "memory/working", "agent/handover", "agent/loop", "server/mcp",
	"memory/file", "agent/pastsession", "agent/subagent", "agent/tool"}

// A writer has no tag or notice of its own, because the guard would not know it.
func TestWritersTakeFramesFromTheList(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`</?([a-z_]+)(?:[> ]|$)`)
	notice := regexp.MustCompile(`(?:^|\n|\.\.\. ?)(?:[\[(](?:%[a-z]|[A-Za-z]+)[ :,\]]|# NOTE)[^\n]*`)
	// These are no frames, or other parts of their texts keep them apart.
	others := []string{
		"format", "path", "the", "id", "think", "thinking", "thought", "name",
		"error", "tool_use_error", "[error]", // how other programs' tools report failures
		// A line of a transcript or an extract. Lines of texts are indented there.
		"[%d] ", "[%d] %s",
		"[image]", "[%d images]", "[%s] %s", "[REDACTED]", "[nothing to read]",
		"[This message was erased.]", "[The summary was erased.]", "(%d more lines)", // stored texts
		"(no lines)", "(its lines do not fit here)", "(empty)", "(it has none)", "(version %d, ", "(GET ", "(SELECT ",
		// lines of texts have numbers there
	}
	for _, folder := range writers {
		literals(t, folder, func(place, text string) {
			for _, found := range tag.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(frame.Tags, found[1]) && !slices.Contains(others, found[1]) {
					t.Errorf("%s: the tag %s is not in frame.Tags", place, found[0])
				}
			}
			found := strings.TrimLeft(notice.FindString(text), "\n")
			if found != "" && !slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(found, o) }) {
				t.Errorf("%s: the notice %q is not in the list of package frame", place, found)
			}
		})
	}
}
