package pattern_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/loci-memory/loci/chunker/pattern"
)

// bad are expressions that one or both of the libraries refuse.
var bad = []string{"(", "[z-a]", `\C`, `a**`, "(?P<x", `\p{Nowhere}`, "a{2000}", `(\pL{900}){900}`,
	`\pL{500}\pN{500}\PL{500}`, strings.Repeat(`[^a-q]{900}`, 80), "\xff", `(?=a)`, `\1`}

// good maps expressions to a text that they match. RE2 has other names for some of them.
var good = map[string]string{`\p{Letter}+`: "ab", `(?i)AB|x`: "ab", `^a(b)?$`: "ab", `\p{Any}b`: "ab", `(?s).{2}`: "ab",
	`[^\d]b`: "ab", `\Aab\z`: "ab", `(?P<n>a)b`: "ab", `\ba`: "a", `(?U)a.*`: "a", `[[:alpha:]]{2}`: "ab"}

// A caller's pattern never gets into the program's log, even if neither library accepts it.
func TestBadPatternsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const inside = "LOCI_TEST_BAD_PATTERNS"
	if os.Getenv(inside) != "" {
		for _, expression := range bad {
			_, _ = pattern.Compile(expression)
		}
		for expression := range good {
			_, _ = pattern.Compile(expression)
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), program, "-test.run=^TestBadPatternsAreNotPrinted$")
	again.Env = append(os.Environ(), inside+"=1")
	var printed bytes.Buffer
	again.Stderr = &printed
	if err := again.Run(); err != nil || printed.Len() > 0 {
		t.Errorf("got %v, and it printed %s", err, &printed)
	}
}

func TestPatternsFindWhatTheySay(t *testing.T) {
	t.Parallel()
	for expression, want := range good {
		compiled, err := pattern.Compile(expression)
		if err != nil {
			t.Errorf("%q: %v", expression, err)
		} else if got := compiled.FindString("ab"); got != want {
			t.Errorf("%q finds %q, want %q", expression, got, want)
		}
	}
	for _, expression := range bad {
		if _, err := pattern.Compile(expression); err == nil {
			t.Errorf("%.40q is compiled", expression)
		}
	}
}
