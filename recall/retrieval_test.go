package recall_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

var update = flag.Bool("update", false, "write the goldens")

// rankings are words alone, and the default.
var rankings = []string{"words", "default"}

func (w *world) rank(ranking string, q recall.Query) []string {
	w.Helper()
	q.Limit = 10
	if ranking == "words" {
		ids, err := w.store.WordsAlone(w.Context(), org, q)
		if err != nil {
			w.Fatal(err)
		}
		return ids
	}
	got, err := w.store.Search(w.Context(), org, q)
	if err != nil {
		w.Fatal(err)
	}
	var ids []string
	for _, h := range got.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// The quality of retrieval is a golden: a change of the ranking shows as a change of it.
func TestRetrievalOfDialogues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := map[string]*embedtest.Quality{}
	for seed := range uint64(6) {
		d := newDialogue(seed)
		agent := w.newAgent()
		ids := w.tell(agent, d.turns)
		for _, q := range d.questions {
			var evidence []string
			for _, id := range q.evidence {
				evidence = append(evidence, ids[id])
			}
			for _, ranking := range rankings {
				found := w.rank(ranking, recall.Query{Text: q.text, AgentID: agent})
				for _, key := range []string{q.category + ranking, ranking} {
					if all[key] == nil {
						all[key] = &embedtest.Quality{}
					}
					all[key].Add(found, evidence)
				}
			}
		}
	}
	var table strings.Builder
	table.WriteString(embedtest.QualityHead)
	for _, category := range append(slices.Clone(categories), "") {
		for _, ranking := range rankings {
			name := category
			if name == "" {
				name = "all"
			}
			table.WriteString(all[category+ranking].Row(name, ranking))
		}
	}
	golden(t, "dialogues", table.String())
}

// tell appends a dialogue; it returns the ids of the messages by those of the turns.
func (w *world) tell(agent string, turns []turn) map[string]string {
	w.Helper()
	drafts := make([]recall.Draft, len(turns))
	for i, s := range turns {
		role := recall.Assistant
		if s.first {
			role = recall.User
		}
		drafts[i] = say(role, s.text)
		drafts[i].Name, drafts[i].CreatedAt = &s.speaker, &s.at
	}
	appended, err := w.store.Append(w.Context(), org, agent, "", drafts)
	if err != nil {
		w.Fatal(err)
	}
	ids := map[string]string{}
	for i, a := range appended {
		ids[turns[i].id] = a.ID
	}
	return ids
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// function is one of the standard library: its code without its comment, and the first sentence of that without its name.
type function struct {
	pkg, code, sentence string
}

// standardLibrary reads the documented functions of some of the standard library's packages.
func standardLibrary(t *testing.T) (all []function) {
	t.Helper()
	root := filepath.Join(runtime.GOROOT(), "src") //nolint:staticcheck // the sources that built the test
	for _, pkg := range []string{"bufio", "bytes", "container/heap", "container/list", "encoding/json", "errors", "fmt", "html", "io", "math", "mime", "net/http", "net/url", "os", "path/filepath", "regexp", "sort", "strconv", "strings", "sync", "text/template", "time", "unicode/utf8"} {
		files, err := fs.Glob(os.DirFS(filepath.Join(root, pkg)), "*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				all = append(all, functionsOf(t, pkg, filepath.Join(root, pkg, name))...)
			}
		}
	}
	return all
}

func functionsOf(t *testing.T, pkg, path string) (all []function) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Doc == nil || f.Body == nil {
			continue
		}
		sentence := strings.ReplaceAll(new(doc.Package).Synopsis(f.Doc.Text()), f.Name.Name, "")
		if len(strings.Fields(sentence)) >= 5 {
			all = append(all, function{pkg: pkg, code: string(source[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]), sentence: sentence})
		}
	}
	return all
}

// slack is how many points the standard library of another release may change the golden by.
const slack = 1.5

// Code is found by what its comment says of it.
func TestRetrievalOfCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	functions := standardLibrary(t)
	byPackage := map[string][]recall.Draft{}
	place := make([]int, len(functions))
	var packages []string
	for i, f := range functions {
		if byPackage[f.pkg] == nil {
			packages = append(packages, f.pkg)
		}
		place[i] = len(byPackage[f.pkg])
		byPackage[f.pkg] = append(byPackage[f.pkg], say(recall.User, f.code))
	}
	ids := map[string][]string{}
	for _, pkg := range packages {
		c, err := w.store.CreateConversation(t.Context(), org, w.agent, recall.NewConversation{})
		if err != nil {
			t.Fatal(err)
		}
		appended, err := w.store.Append(t.Context(), org, w.agent, c.ID, byPackage[pkg])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range appended {
			ids[pkg] = append(ids[pkg], a.ID)
		}
	}
	all := map[string]*embedtest.Quality{"words": {}, "default": {}}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(functions))[:150] {
		f := functions[i]
		for _, ranking := range rankings {
			all[ranking].Add(w.rank(ranking, recall.Query{Text: f.sentence, AgentID: w.agent}), []string{ids[f.pkg][place[i]]})
		}
	}
	table := fmt.Sprintf("%s, %d functions\n", runtime.Version(), len(functions)) +
		all["words"].Row("code", "words") + all["default"].Row("code", "default")
	want, err := os.ReadFile(filepath.Join("testdata", "code.golden"))
	if *update || err != nil || strings.HasPrefix(string(want), runtime.Version()+",") {
		golden(t, "code", table)
		return
	}
	near(t, string(want), table)
}

// near compares the numbers of two tables, whose sources differ by a release.
func near(t *testing.T, want, got string) {
	t.Helper()
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 1; i < min(len(wanted), len(gotten)); i++ {
		a, b := strings.Fields(wanted[i]), strings.Fields(gotten[i])
		for _, column := range []int{3, 4} {
			if len(a) <= column {
				continue
			}
			x, _ := strconv.ParseFloat(a[column], 64)
			y, _ := strconv.ParseFloat(b[column], 64)
			if x-y > slack {
				t.Errorf("%s ranks worse than on another release: %s", gotten[i], wanted[i])
			}
		}
	}
}
