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

// literals yields the strings in the source of a package, with where they stand.
func literals(t *testing.T, folder string, yield func(at, text string)) {
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
			if call, ok := n.(*ast.CallExpr); ok { // an expression is no frame, nor is an error
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

// forms returns the notices that a writer can take from the list, by their names.
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

// Each notice that a writer can take from the list is marked where a text has it, and the text can be had back.
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

// text returns the value of a constant: a string, or a sum of strings.
func text(t *testing.T, of ast.Expr) string {
	t.Helper()
	switch of := of.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(of.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return text(t, of.X) + text(t, of.Y)
	}
	t.Fatalf("%T is no string", of)
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

// The packages that write what a model reads.
var writers = []string{"archival", "compaction", "compaction/policy", "files", "files/grep", "recall", "recall/chat",
	"agent", "memory/block", "memory/working", "agent/handover", "agent/loop", "server/mcp",
	"memory/file", "agent/seance", "agent/subagent", "agent/tool"}

// No writer has a tag or a notice of its own, which the guard would not know.
func TestWritersTakeFramesFromTheList(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`</?([a-z_]+)(?:[> ]|$)`)
	notice := regexp.MustCompile(`(?:^|\n|\.\.\. ?)(?:[\[(](?:%[a-z]|[A-Za-z]+)[ :,\]]|# NOTE)[^\n]*`)
	others := []string{ // what the texts around them keep apart, or what is no frame
		"format", "path", "the", "id", "think", "thinking", "thought", "name",
		"[%d] ", "[%d] %s", // a line of a transcript or an extract, where the lines of texts are indented
		"[image]", "[%d images]", "[%s] %s", "[REDACTED]", "[nothing to read]",
		"[This message was erased.]", "[The summary was erased.]", "(%d more lines)", // stored texts
		"(no lines)", "(its lines do not fit here)", "(empty)", "(it has none)", "(GET ", "(SELECT ",
		// the lines of texts have numbers there
	}
	for _, folder := range writers {
		literals(t, folder, func(at, text string) {
			for _, found := range tag.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(frame.Tags, found[1]) && !slices.Contains(others, found[1]) {
					t.Errorf("%s: the tag %s is not in frame.Tags", at, found[0])
				}
			}
			found := strings.TrimLeft(notice.FindString(text), "\n")
			if found != "" && !slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(found, o) }) {
				t.Errorf("%s: the notice %q is not in the list of package frame", at, found)
			}
		})
	}
}
