package recall_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// rankings are the ranking by words alone and the default one.
var rankings = []string{"words", "default"}

func (f *fixture) rank(ranking string, q recall.Query) []string {
	f.Helper()
	q.Limit = 10
	if ranking == "words" {
		ids, err := f.store.WordsAlone(f.Context(), f.org, q)
		if err != nil {
			f.Fatal(err)
		}
		return ids
	}
	got, err := f.store.Search(f.Context(), f.org, q)
	if err != nil {
		f.Fatal(err)
	}
	var ids []string
	for _, h := range got.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// A golden file records the quality of retrieval, so a change of the ranking shows there.
func TestRetrievalOfDialogues(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	f := newFixture(t)
	all := map[string]*embedtest.Quality{}
	for seed := range uint64(6) {
		d := newDialogue(seed)
		agent := f.newAgent()
		ids := f.tell(agent, d.turns)
		for _, q := range d.questions {
			var evidence []string
			for _, id := range q.evidence {
				evidence = append(evidence, ids[id])
			}
			for _, ranking := range rankings {
				found := f.rank(ranking, recall.Query{Text: q.text, AgentID: agent})
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
	checkGolden(t, "dialogues", table.String())
}

// tell appends a dialogue. It returns a map from the ids of turns to the ids of messages.
func (f *fixture) tell(agent string, turns []turn) map[string]string {
	f.Helper()
	drafts := make([]recall.Draft, len(turns))
	for i, s := range turns {
		role := recall.Assistant
		if s.first {
			role = recall.User
		}
		drafts[i] = say(role, s.text)
		drafts[i].Name, drafts[i].CreatedAt = &s.speaker, &s.at
	}
	appended, err := f.store.Append(f.Context(), f.org, agent, "", drafts)
	if err != nil {
		f.Fatal(err)
	}
	ids := map[string]string{}
	for i, a := range appended {
		ids[turns[i].id] = a.ID
	}
	return ids
}

// function is a function of the standard library: its code without the comment, and the comment's first sentence
// without the function's name.
type function struct {
	pkg, code, sentence string
}

// standardLibrary reads the documented functions in some packages of the standard library.
func standardLibrary(t *testing.T) (all []function) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output() // -trimpath hides it
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	for _, pkg := range []string{"bufio", "bytes", "container/heap", "container/list", "encoding/json", "errors", "fmt",
		"html", "io", "math", "mime", "net/http", "net/url", "os", "path/filepath", "regexp", "sort", "strconv", "strings",
		"sync", "text/template", "time", "unicode/utf8"} {
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
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || fn.Body == nil {
			continue
		}
		sentence := strings.ReplaceAll(new(doc.Package).Synopsis(fn.Doc.Text()), fn.Name.Name, "")
		if len(strings.Fields(sentence)) >= 5 {
			all = append(
				all,
				function{
					pkg:      pkg,
					code:     string(source[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset]),
					sentence: sentence,
				},
			)
		}
	}
	return all
}

// slack is by how many points another release of the standard library may change the golden numbers.
const slack = 1.5

// A function is found by its comment.
func TestRetrievalOfCode(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	f := newFixture(t)
	functions := standardLibrary(t)
	byPackage := map[string][]recall.Draft{}
	place := make([]int, len(functions))
	var packages []string
	for i, fn := range functions {
		if byPackage[fn.pkg] == nil {
			packages = append(packages, fn.pkg)
		}
		place[i] = len(byPackage[fn.pkg])
		byPackage[fn.pkg] = append(byPackage[fn.pkg], say(recall.User, fn.code))
	}
	ids := map[string][]string{}
	for _, pkg := range packages {
		c, err := f.store.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{})
		if err != nil {
			t.Fatal(err)
		}
		appended, err := f.store.Append(t.Context(), f.org, f.agent, c.ID, byPackage[pkg])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range appended {
			ids[pkg] = append(ids[pkg], a.ID)
		}
	}
	all := map[string]*embedtest.Quality{"words": {}, "default": {}}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(functions))[:150] {
		fn := functions[i]
		for _, ranking := range rankings {
			all[ranking].Add(f.rank(ranking, recall.Query{Text: fn.sentence, AgentID: f.agent}), []string{ids[fn.pkg][place[i]]})
		}
	}
	table := fmt.Sprintf("%s, %d functions\n", runtime.Version(), len(functions)) +
		all["words"].Row("code", "words") + all["default"].Row("code", "default")
	want, err := os.ReadFile(filepath.Join("testdata", "code.golden"))
	if golden.Updating() || err != nil || strings.HasPrefix(string(want), runtime.Version()+",") {
		checkGolden(t, "code", table)
		return
	}
	near(t, string(want), table)
}

// near compares the numbers in two tables that were made from different releases of the standard library.
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
