package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Limits for a top-level folder's share of the product's lines, in percent.
const (
	mostOfServer = 25
	mostOfFolder = 20
)

// doors are the folders with HTTP code. others contain tools of the repository, which are not part of the product.
var (
	doors  = []string{"server", "cmd"}
	others = []string{"bench", "tools", "tests"}
)

// ofHandlers are names of net/http that only doors need.
var ofHandlers = []string{"Handler", "HandlerFunc", "ResponseWriter", "Server", "ServeMux"}

// statement matches an SQL statement, or the beginning of one.
var statement = regexp.MustCompile(`(?s)\b(SELECT\s.*\bFROM|INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET|` +
	`SET\s+TRANSACTION|LOCK\s+TABLE|COPY\s+\w+|NOTIFY\s+\w+)\b`)

func TestOnlyTheDoorsSpeakHTTP(t *testing.T) {
	t.Parallel()
	for path, source := range productSources(t) {
		if slices.Contains(doors, folderOf(path)) || strings.HasSuffix(filepath.Dir(path), "test") {
			continue
		}
		ast.Inspect(source, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if qualifier, ok := s.X.(*ast.Ident); ok && qualifier.Name == importName(source, "net/http") &&
				slices.Contains(ofHandlers, s.Sel.Name) {
				t.Errorf("%s uses http.%s; only packages in %v may", path, s.Sel.Name, doors)
			}
			return true
		})
	}
}

func TestTheServerHoldsNoSQL(t *testing.T) {
	t.Parallel()
	for path, source := range productSources(t) {
		if folderOf(path) != "server" || strings.HasSuffix(filepath.Dir(path), "test") {
			continue
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && statement.MatchString(text.Value) {
				t.Errorf("%s holds a statement: %s", path, statement.FindString(text.Value))
			}
			return true
		})
	}
}

func TestNoFolderHasTooMuchOfTheProduct(t *testing.T) {
	t.Parallel()
	lines, all := map[string]int{}, 0
	for path, source := range productSources(t) {
		if ast.IsGenerated(source) {
			continue
		}
		n := fileSet.File(source.Pos()).LineCount()
		lines[folderOf(path)] += n
		all += n
	}
	for folder, n := range lines {
		most := mostOfFolder
		if folder == "server" {
			most = mostOfServer
		}
		if 100*n > most*all {
			t.Errorf("%s has %d of %d lines, more than %d %%", folder, n, all, most)
		}
	}
}

// fileSet has the positions in the source files.
var fileSet = token.NewFileSet()

// productSources returns the product's files, without tests, by their paths in the module.
func productSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	sources, err := parseProduct()
	if err != nil || len(sources) < 100 {
		t.Fatalf("found %d files, %v", len(sources), err)
	}
	return sources
}

// parseProduct parses the product's files once.
var parseProduct = sync.OnceValues(func() (map[string]*ast.File, error) {
	sources := map[string]*ast.File{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || name == "node_modules" || len(name) > 2 && name[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		path, err = filepath.Rel(root, path)
		path = filepath.ToSlash(path)
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			slices.Contains(others, folderOf(path)) {
			return err
		}
		sources[path], err = parser.ParseFile(fileSet, filepath.Join(root, path), nil,
			parser.SkipObjectResolution|parser.ParseComments)
		return err
	})
	return sources, err
})

// folderOf returns the top-level folder of a path.
func folderOf(path string) string {
	folder, _, _ := strings.Cut(path, "/")
	return folder
}

// importName returns the name by which a file uses a package; empty if the file does not import it.
func importName(source *ast.File, path string) string {
	for _, i := range source.Imports {
		if i.Path.Value != `"`+path+`"` {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}
