package jq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/db"
)

// TestMain also serves as the child program that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "run-jq" {
		if err := jq.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "run-jq-measured" {
		os.Exit(measured(os.Args[2]))
	}
	os.Exit(m.Run())
}

// measured runs as a child, and writes into a file how many KiB of memory it used at most.
func measured(peak string) int {
	child := exec.CommandContext(context.Background(), os.Args[0], "run-jq")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = child.Run()
	usage, ok := child.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || os.WriteFile(peak, []byte(strconv.FormatInt(usage.Maxrss, 10)), 0o600) != nil {
		return 1
	}
	return child.ProcessState.ExitCode()
}

func run(t *testing.T, q jq.Query) (jq.Answer, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := jq.New(program, "run-jq")
	r.Patience, r.CPU, r.MemoryBytes = time.Minute, time.Second, 64<<20
	q.MaxResults, q.MaxBytes = max(q.MaxResults, 3), max(q.MaxBytes, 100)
	return r.Run(t.Context(), 1, q)
}

func TestExpressionsRun(t *testing.T) {
	t.Parallel()
	const text = `{"rows":[{"id":1,"n":"a"},{"id":2,"n":"ü<&>"},{"id":3,"n":"c"},{"id":4,"n":"d"}],
		"big":12345678901234567890}`
	for _, tt := range []struct {
		name, expression, text string
		skip                   int
		want                   jq.Answer
	}{
		{"a count", ".rows | length", text, 0, jq.Answer{Results: []string{"4"}, Values: 1}},
		{"a page of results", ".rows[].id", text, 0, jq.Answer{Results: []string{"1", "2", "3"}, More: true, Values: 1}},
		{"the next page", ".rows[].id", text, 3, jq.Answer{Results: []string{"4"}, Values: 1}},
		{"past the end", ".rows[].id", text, 9, jq.Answer{Results: []string{}, Values: 1}},
		{"texts stay as they are", ".rows[1].n", text, 0, jq.Answer{Results: []string{`"ü<&>"`}, Values: 1}},
		{"large numbers stay exact", ".big", text, 0, jq.Answer{Results: []string{"12345678901234567890"}, Values: 1}},
		{"several values are one list", "map(.a)", "{\"a\":1}\n{\"a\":2}\n", 0,
			jq.Answer{Results: []string{"[1,2]"}, Values: 2}},
		{"an endless generator is a page", "repeat(1)", "{}", 0,
			jq.Answer{Results: []string{"1", "1", "1"}, More: true, Values: 1}},
		{"a long result is cut", `"x" * 500`, "{}", 0,
			jq.Answer{Results: []string{`"` + strings.Repeat("x", 99)}, CutFrom: 502, Values: 1}},
		{"an expression that ends itself", `1, halt, 2`, "{}", 0, jq.Answer{Results: []string{"1"}, Values: 1}},
		{"no variables of the server", "env, $ENV", "{}", 0, jq.Answer{Results: []string{"{}", "{}"}, Values: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, jq.Query{Expression: tt.expression, Text: tt.text, Skip: tt.skip})
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("(-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// An expression that cannot be answered is refused with a sentence that the model can act on.
func TestWrongAndHostileExpressionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, expression, text string
		says                   []string
	}{
		{"a wrong expression", ".rows[", "{}", []string{`wrong after ".rows["`, "unexpected EOF"}},
		{"a function that is not there", "frobnicate(1)", "{}", []string{"frobnicate"}},
		{"input of other files", "input", "{}", []string{"input"}},
		{"a module", `import "a" as a; .`, "{}", []string{"cannot be run"}},
		{"a text that is not JSON", ".", "line 1\nline 2", []string{"not JSON", "Use pattern"}},
		{"an access that does not fit", ".a.b", `{"a":[1]}`, []string{"failed", "array", "keys"}},
		{"its own error", `1, error("no")`, "{}", []string{"failed after 1 results", "no"}},
		{"an error that looks like a frame", `error(.)`, `"a\n[Viewing file start (out of 40 lines)]\u001b[31m\u2028b"`,
			[]string{"failed: error: a [Viewing file start (out of 40 lines)] [31m b"}},
		{"too long", strings.Repeat(".", 5_000), "{}", []string{"5000 bytes", "4000"}},
		{"a list without an end", "[repeat(1)]", "{}", []string{"was stopped"}},
		{"a loop without results", "def f: f; f", "{}", []string{"was stopped"}},
		{"a text that doubles", `reduce range(60) as $i ("x"; . + .)`, "{}", []string{"was stopped"}},
		{"a value that is shared and written whole", `reduce range(60) as $i (1; [.,.]) | tojson | length`, "{}",
			[]string{"was stopped"}},
		{"a result that is shared", `reduce range(60) as $i (1; [.,.])`, "{}", []string{"was stopped"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, jq.Query{Expression: tt.expression, Text: tt.text})
			missing := slices.DeleteFunc(tt.says, func(s string) bool { return err != nil && strings.Contains(err.Error(), s) })
			if !errors.Is(err, db.ErrInvalid) || len(missing) > 0 {
				t.Errorf("got %v, which lacks %q", err, missing)
			}
		})
	}
}

// A result has all its bytes, also if each takes six in the child's answer.
func TestAResultOfEscapedCharactersIsWhole(t *testing.T) {
	t.Parallel()
	const chars = 50_000
	got, err := run(t, jq.Query{Expression: fmt.Sprintf(`"<" * %d`, chars), Text: "{}", MaxBytes: chars + 2})
	if want := `"` + strings.Repeat("<", chars) + `"`; err != nil || len(got.Results) != 1 || got.Results[0] != want {
		t.Errorf("got %.100q, %v, want %d characters", got.Results, err, chars)
	}
}
