package lexicon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/lexicon"
)

// function is a function of Go's standard library: the first sentence of its comment, without its name, and its code.
type function struct{ says, code string }

// TestFindsFunctionsByWhatTheyDo measures all parts of search by words: tokenizer, weights, and the idf from a sample.
// It searches the code of the standard library for sentences of its documentation. Some 59 % of the functions are among
// the first ten hits. A result far below that shows a fault, even if all other tests pass.
func TestFindsFunctionsByWhatTheyDo(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	const queries, least = 1000, 57.7 // measured: 59.2
	functions := standardLibrary(t)
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(functions), func(i, j int) { functions[i], functions[j] = functions[j], functions[i] })
	index := make(map[int32][]posting)
	var sample [][]int64
	for i, f := range functions {
		lex := lexicon.Document(f.code)
		for k, id := range lex.Terms {
			index[id] = append(index[id], posting{i, lex.Vector.Values()[k]})
		}
		if i < lexicon.SampleRows {
			sample = append(sample, lexicon.Owned(0, lex.Terms))
		}
	}
	idf := lexicon.NewIDF(sample, len(functions))
	asked, found := 0, 0
	for i := 0; i < len(functions) && asked < queries; i++ {
		if len(strings.Fields(functions[i].says)) < 6 {
			continue
		}
		asked++
		if rank(index, len(functions), idf.Query(functions[i].says), i) <= 10 {
			found++
		}
	}
	got := 100 * float64(found) / float64(asked)
	t.Logf("%d functions, %d sentences, %.1f %% found in the first ten", len(functions), asked, got)
	if asked < queries || got < least {
		t.Errorf("got %.1f %% of %d sentences in the first ten, want %.1f %% of %d", got, asked, least, queries)
	}
}

// posting is a document's weight for a term.
type posting struct {
	document int
	weight   float32
}

// rank returns the place of a document in the order by BM25, from 1. Documents with equal scores are in the order of
// documents, which is random.
func rank(index map[int32][]posting, documents int, q lexicon.Query, document int) int {
	scores := make([]float32, documents)
	for k, id := range q.Vector.Indices() {
		for _, p := range index[id] {
			scores[p.document] += p.weight * q.Vector.Values()[k]
		}
	}
	better := 0
	for i, score := range scores {
		if score > scores[document] || score == scores[document] && i < document {
			better++
		}
	}
	return better + 1
}

// standardLibrary returns the functions of four lines or more.
func standardLibrary(t *testing.T) []function {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output() // -trimpath hides it
	if err != nil {
		t.Fatal(err)
	}
	var functions []function
	err = filepath.WalkDir(
		filepath.Join(strings.TrimSpace(string(root)), "src"),
		func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && (name == "cmd" || name == "vendor" || name == "testdata" || name == "runtime" ||
				name == "internal" || name == "syscall"):
				return filepath.SkipDir
			case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			source, err := os.ReadFile(path)
			functions = append(functions, functionsOf(string(source))...)
			return err
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return functions
}

var firstSentence = regexp.MustCompile(`^(?s:.*?[.!?])\s+[A-Z]`)

func functionsOf(source string) []function {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var functions []function
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		code := source[files.Position(f.Type.Pos()).Offset:files.Position(f.End()).Offset]
		if strings.Count(code, "\n") < 3 {
			continue
		}
		says := f.Doc.Text()
		if first := firstSentence.FindString(says); first != "" {
			says = first[:len(first)-1]
		}
		functions = append(functions, function{strings.ReplaceAll(says, f.Name.Name, ""), code})
	}
	return functions
}
