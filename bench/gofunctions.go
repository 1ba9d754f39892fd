package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// goFunction is a function of Go's standard library.
type goFunction struct {
	says        string // first sentence of its comment, without the function's name
	first, last int    // lines of its code
}

// leastLines is how many lines a function must have to be asked about.
const leastLines = 4

// uncommented returns a source file without the comments of its functions, and the functions with at least leastLines
// lines.
func uncommented(source string) (text string, functions []goFunction, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	offset, lines := 0, 1 // offset in the source; next line of the output
	write := func(to int) {
		b.WriteString(source[offset:to])
		lines += strings.Count(source[offset:to], "\n")
		offset = to
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := files.Position(f.Type.Pos()).Offset, files.Position(f.End()).Offset
		if f.Doc != nil {
			write(files.Position(f.Doc.Pos()).Offset)
			offset = begin
		}
		write(begin)
		first := lines
		write(end)
		if f.Body != nil && lines-first+1 >= leastLines {
			functions = append(functions, goFunction{firstSentence(f.Doc.Text(), f.Name.Name), first, lines})
		}
	}
	write(len(source))
	return b.String(), functions, nil
}

var sentenceEnd = regexp.MustCompile(`^(?s:.*?[.!?])\s+[A-Z]`)

// firstSentence returns the first sentence of a function's comment, without the function's name.
func firstSentence(comment, name string) string {
	if first := sentenceEnd.FindString(comment); first != "" {
		comment = first[:len(first)-1]
	}
	return onOneLine(strings.ReplaceAll(comment, name, ""))
}

// goLibrary returns the sources of Go's standard library without the comments of functions. It returns a question for
// each function with a comment that says enough.
func goLibrary(ctx context.Context) (f folder, questions []fileQuestion, err error) {
	paths, err := goSources(ctx)
	if err != nil {
		return f, nil, err
	}
	f.name = "go"
	for _, path := range paths {
		_, name, _ := strings.Cut(filepath.ToSlash(path), "/src/")
		parts := strings.Split(name, "/")
		if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(parts, isApart) {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return f, nil, err
		}
		text, functions, err := uncommented(string(source))
		if err != nil {
			continue // a source that is not compiled
		}
		file := strings.Join(parts, "-")
		f.files = append(f.files, fileText{file, text})
		for _, fn := range functions {
			if len(strings.Fields(fn.says)) >= 6 {
				questions = append(questions, fileQuestion{text: fn.says, file: file, first: fn.first, last: fn.last})
			}
		}
	}
	return f, questions, nil
}

// isApart reports whether a folder of Go's sources is not meant to be imported by programs.
func isApart(name string) bool {
	switch name {
	case "cmd", "vendor", "testdata", "runtime", "internal", "syscall":
		return true
	}
	return false
}
