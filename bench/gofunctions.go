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
	says        string // the first sentence of its comment, without its name
	first, last int    // lines of its code
}

// leastLines is how many lines a function has that is asked for.
const leastLines = 4

// uncommented returns a source without the comments of its functions, and the functions with leastLines or more.
func uncommented(source string) (text string, functions []goFunction, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	from, lines := 0, 1 // of the source, of what is written
	write := func(to int) {
		b.WriteString(source[from:to])
		lines += strings.Count(source[from:to], "\n")
		from = to
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := files.Position(f.Type.Pos()).Offset, files.Position(f.End()).Offset
		if f.Doc != nil {
			write(files.Position(f.Doc.Pos()).Offset)
			from = begin
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

// firstSentence returns the first sentence of a function's comment, without its name.
func firstSentence(comment, name string) string {
	if first := sentenceEnd.FindString(comment); first != "" {
		comment = first[:len(first)-1]
	}
	return onOneLine(strings.ReplaceAll(comment, name, ""))
}

// goLibrary returns the sources of Go's standard library without the comments of their functions, and a question for
// each function that says enough.
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
			continue // a source that is not to be compiled
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

// isApart reports whether a folder of Go's sources is no part of what programs import.
func isApart(name string) bool {
	switch name {
	case "cmd", "vendor", "testdata", "runtime", "internal", "syscall":
		return true
	}
	return false
}
