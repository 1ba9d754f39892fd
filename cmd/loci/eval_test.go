package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuestionsAreReadLineByLine(t *testing.T) {
	t.Parallel()
	got, err := readQuestions([]byte("{\"question\": \"Who?\", \"text\": \"Ada\"}\r\n\n" +
		`{"question": "Where?", "file": "a.md"}` + "\n" + `{"question": "When?", "passage": "passage-1"}`))
	if err != nil || len(got) != 3 || got[0].Text != "Ada" || got[1].line != 3 || got[2].Passage != "passage-1" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range []struct{ lines, want string }{
		{"", "it has no questions"},
		{"\n{\"question\": \"Who?\"", "line 2: it is no JSON object"},
		{`["Who?"]`, "line 1: it is no JSON object"},
		{`{"question": "Who?", "answer": "Ada"}`, `unknown field "answer"`},
		{`{"question": "Who?", "text": "Ada"} {}`, "line 1: it has more than one JSON object"},
		{`{"text": "Ada"}`, "line 1: it has no question"},
		{`{"question": "Who?"}`, "line 1: it says nothing of the answer"},
		{`{"question": "Who?", "text": " "}`, "line 1: it says nothing of the answer"},
		{`{"question": "Who?", "text": "Ada", "file": "a.md"}`, "line 1: it has more than one of file, passage and text"},
	} {
		if _, err := readQuestions([]byte(c.lines)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.lines, err, c.want)
		}
	}
}

// scriptedSearch returns a search that finds the answers at given places: by words, by meaning, and by both with a
// weight.
func scriptedSearch(places func(question int, w way) int) searcher {
	return func(_ context.Context, question string, w way) (hits []foundText, meaning bool, err error) {
		var number int
		if _, err := fmt.Sscan(question, &number); err != nil {
			return nil, false, err
		}
		hits = make([]foundText, evalDepth)
		if place := places(number, w); place > 0 {
			hits[place-1].text = "The  ANSWER " + question
		}
		return hits, w.mode != "fts", nil
	}
}

func numbered(n int) (all []expected) {
	for i := range n {
		all = append(all, expected{Question: fmt.Sprint(i), Text: fmt.Sprint("the answer ", i), line: i + 1})
	}
	return all
}

func TestSearchesAreComparedAndAWeightIsProposed(t *testing.T) {
	t.Parallel()
	search := scriptedSearch(func(question int, w way) int {
		switch {
		case question == 38:
			return 0
		case w.mode == "fts" && question == 39:
			return 2
		case w.mode == "fts", w.mode == "hybrid" && question == 39:
			return 0
		case w.mode == "vector":
			return 1
		case w.weight == 0.8:
			return 1
		}
		return 4
	})
	got, err := evaluate(t.Context(), numbered(40), search)
	if err != nil {
		t.Fatal(err)
	}
	fused := quality{Hit5: 95, Hit10: 95, MRR: 23.75}
	want := evaluation{Questions: 40, Words: quality{Hit5: 2.5, Hit10: 2.5, MRR: 1.25},
		Meaning: &quality{97.5, 97.5, 97.5, 97.5}, Fused: fused, Missed: []missed{{39, "38"}}, Lost: []lost{{40, "39", 2}},
		Proposed: new(0.8)}
	for _, weight := range triedWeights {
		want.Weights = append(want.Weights, weighted{weight, fused})
		if weight == 0.8 {
			want.Weights[len(want.Weights)-1].quality = quality{95, 95, 95, 95}
		}
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near, cmp.AllowUnexported(weighted{})); diff != "" {
		t.Errorf("the evaluation (-want +got):\n%s", diff)
	}
	out := newLines()
	if err := got.print(streams{out: out}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"words and meaning", "with the weight 0.8   95.0", "line 39: 38",
		"line 40, number 2 by words: 39", "Set LOCI_EMBEDDING_WEIGHT=0.8"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("printed without %q:\n%s", line, out)
		}
	}
}

func TestNoWeightIsProposedWithoutAReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		questions int
		place     int // place with the weight 0.1 instead of 3
		advice    string
	}{
		{"all weights are alike", 40, 3, "Keep LOCI_EMBEDDING_WEIGHT as it is"},
		{"there are few questions", 5, 1, "5 questions say little"},
		{"one weight is better", 40, 1, "Set LOCI_EMBEDDING_WEIGHT=0.1"},
	} {
		got, err := evaluate(t.Context(), numbered(c.questions), scriptedSearch(func(_ int, w way) int {
			if w.weight == 0.1 {
				return c.place
			}
			return 3
		}))
		if err != nil || !strings.Contains(got.advice(), c.advice) {
			t.Errorf("%s: got %q, %v; want %q", c.name, got.advice(), err, c.advice)
		}
	}
}

// The shared server has no embedding model. A folder, an archive and an agent are named by name, and searches in them
// are measured by words.
func TestEvalOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(want int, args ...string) (evaluation, string) {
		t.Helper()
		code, out, errs := command(t, p.asking(append([]string{"eval", "--json"}, args...)...)...)
		if code != want {
			t.Fatalf("loci eval %v: ended with %d, want %d: %s%s", args, code, want, out, errs)
		}
		var e evaluation
		if err := json.Unmarshal([]byte(out), &e); code == 0 && err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return e, errs
	}
	heron := write("heron.md", "The heron stands at the pond.\n")
	if code, out, errs := command(t, p.asking("upload", "birds", heron)...); code != 0 {
		t.Fatalf("upload: %d %s%s", code, out, errs)
	}
	agent := call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "keeper"}).ID
	archive := call[identified](p, "POST", "/v1/archives/", map[string]any{"name": "notes"}).ID
	call[[]identified](p, "POST", "/v1/archives/"+archive+"/passages/batch",
		map[string]any{"passages": []map[string]any{{"text": "Ada keeps the spare keys."}}})
	p.send(http.MethodPatch, "/v1/agents/"+agent+"/archives/attach/"+archive, map[string]any{})
	asked := write("q.jsonl", `{"question": "where does the heron stand", "file": "heron.md"}
{"question": "who has the spare keys", "text": "ada KEEPS"}
`)
	for _, c := range []struct {
		scope string
		hit10 float64
	}{{"--folder=birds", 50}, {"--agent=keeper", 50}} {
		got, _ := run(0, asked, c.scope)
		if got.Questions != 2 || got.Words.Hit10 < c.hit10 || got.Meaning != nil ||
			!strings.Contains(got.Note, "no embedding model") {
			t.Errorf("%s: got %+v", c.scope, got)
		}
	}
	keys := write("keys.jsonl", `{"question": "who has the spare keys", "text": "ada KEEPS"}`)
	if got, _ := run(0, keys, "--archive=notes"); got.Words.Hit1 != 100 {
		t.Errorf("the archive: got %+v", got)
	}
	for _, c := range []struct{ questions, scope, want string }{
		{`{"question": "q", "file": "none.md"}`, "--folder=birds", `line 1: the folder "birds" has no file "none.md"`},
		{`{"question": "q", "passage": "p"}`, "--folder=birds", "line 1: a folder has no passages"},
		{`{"question": "q", "file": "a.md"}`, "--archive=notes", "line 1: an archive has no files"},
		{`{"question": "q", "text": "a"}`, "--archive=nothing", `there is no archive "nothing"`},
		{`{"question": "q"}`, "--folder=birds", "bad.jsonl: line 1: it says nothing of the answer"},
	} {
		if _, errs := run(1, write("bad.jsonl", c.questions), c.scope); !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: got %s, want %q", c.scope, c.questions, errs, c.want)
		}
	}
	for _, args := range [][]string{{asked}, {asked, "--folder=birds", "--agent=keeper"}} {
		if _, errs := run(2, args...); !slices.ContainsFunc([]string{"--folder", "--agent"},
			func(flag string) bool { return strings.Contains(errs, flag) }) {
			t.Errorf("%v: got %s", args, errs)
		}
	}
}
