package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package describes how the files of a package use each other. Tests and generated files are left out.
type Package struct {
	Path  string                         // import path
	Files []string                       // base names, sorted
	Lines map[string]int                 // by file
	Uses  map[string]map[string][]string // the names, sorted, that the first file uses of the second
	Doc   string                         // text of the package comment
}

// listed is go list's description of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	Standard   bool
	DepOnly    bool
	Error      *struct{ Err string }
}

// load reads the packages that patterns match, as go list does in folder. It compiles their imports.
func load(folder string, patterns ...string) ([]Package, error) {
	all, err := list(folder, patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var packages []Package
	for _, p := range all {
		if p.DepOnly || p.Standard || len(p.GoFiles) == 0 {
			continue
		}
		loaded, err := read(p, set, imports)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		packages = append(packages, loaded)
	}
	return packages, nil
}

// list runs go list.
func list(folder string, patterns []string) ([]listed, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard,DepOnly,Error"},
		patterns...)
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // the caller's patterns
	cmd.Dir = folder
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %w: %s", err, failed.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case p.Error != nil:
			return nil, errors.New(p.Error.Err)
		}
		all = append(all, p)
	}
}

// read reads one package.
func read(described listed, set *token.FileSet, imports types.Importer) (Package, error) {
	var sources []*ast.File
	p := Package{Path: described.ImportPath, Lines: map[string]int{}, Uses: map[string]map[string][]string{}}
	for _, name := range described.GoFiles {
		source, err := parser.ParseFile(set, filepath.Join(described.Dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return p, err
		}
		sources = append(sources, source)
		if ast.IsGenerated(source) {
			continue
		}
		p.Files, p.Lines[name] = append(p.Files, name), set.File(source.Pos()).LineCount()
		if source.Doc != nil {
			p.Doc += source.Doc.Text()
		}
	}
	slices.Sort(p.Files)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: imports}).Check(described.ImportPath, set, sources, info)
	if err != nil {
		return p, err
	}
	p.Uses = uses(set, checked, info, p.Files)
	return p, nil
}

// uses returns the names that some files of a package use from each other.
func uses(set *token.FileSet, pkg *types.Package, info *types.Info, files []string) map[string]map[string][]string {
	file := func(pos token.Pos) string { return filepath.Base(set.Position(pos).Filename) }
	found := map[string]map[string][]string{}
	for name, object := range info.Uses {
		user, declarer := file(name.Pos()), file(object.Pos())
		if object.Pkg() != pkg || !declares(pkg, object) || user == declarer ||
			!slices.Contains(files, user) || !slices.Contains(files, declarer) {
			continue
		}
		if found[user] == nil {
			found[user] = map[string][]string{}
		}
		if !slices.Contains(found[user][declarer], object.Name()) {
			found[user][declarer] = append(found[user][declarer], object.Name())
			slices.Sort(found[user][declarer])
		}
	}
	return found
}

// declares reports whether a package declares an object at the top level or as a method.
func declares(p *types.Package, object types.Object) bool {
	if object.Parent() == p.Scope() {
		return true
	}
	method, ok := object.(*types.Func)
	return ok && method.Signature().Recv() != nil
}
