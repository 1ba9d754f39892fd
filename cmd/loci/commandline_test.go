package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A shell that completes a command line gets commands, flags, and the values of flags.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"files re":                     {"reparse", "retry"},
		"files list --st":              {"--status"},
		"files list --status ":         {"completed", "embedding", "error", "parsing", "pending"},
		"completion ":                  {"bash", "fish", "zsh"},
		"reembed --wa":                 {"--wait"},
		"reembed s":                    {"start", "status"},
		"keys create --requests-per-m": {"--requests-per-minute"},
		"run-":                         nil,
	} {
		code, out, errs := command(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		var got []string
		for text := range strings.Lines(out) {
			if word, _, _ := strings.Cut(strings.TrimSpace(text), "\t"); !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		if slices.Sort(got); code != 0 || !slices.Equal(got, want) {
			t.Errorf("%q: got %d, %q, want %q: %s", line, code, got, want, errs)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		for _, args := range [][]string{{"completion", shell}, {"completion", "-c", shell}} {
			code, out, errs := command(t, args...)
			if code != 0 || !strings.Contains(out, shell+" completion") || !strings.Contains(out, "__complete") || errs != "" {
				t.Errorf("%q ended with %d: %s%.300s", args, code, errs, out)
			}
		}
	}
}

// A misspelt or incomplete command line is a sentence that says what to write. None of these commands runs.
func TestMisspeltCommandsAreExplained(t *testing.T) {
	for _, variable := range []string{"LOCI_URL", "LOCI_ADDR", "LOCI_API_KEY", "LOCI_AGENT"} {
		t.Setenv(variable, "")
		os.Unsetenv(variable)
	}
	for line, want := range map[string]string{
		"":                                     "expected a command: 'loci --help' lists them",
		"fles":                                 `unexpected argument fles, did you mean "files"?`,
		"help fles":                            `unexpected argument fles, did you mean "files"?`,
		"files":                                `expected one of "`,
		"files lst":                            `unexpected argument lst, did you mean "list"?`,
		"files lst --help":                     `unexpected argument lst, did you mean "list"?`,
		"files list a b":                       "unexpected argument b",
		"files list -- a -b":                   "unexpected argument -b",
		"files text":                           `expected "<folder> <file>"`,
		"upload a":                             `expected "<files> ..."`,
		"files list --jsn":                     `unknown flag --jsn, did you mean "--json"?`,
		"files --json list":                    "unknown flag --json",
		"files list -x":                        "unknown flag -x",
		"files list -1":                        "unknown flag -1",
		"files list --status":                  "--status needs a value",
		"files list --status --json":           `if that is the value, write --status="--json"`,
		"stats a --addr -x":                    `--addr needs a value but got "-x"`,
		"version --json=maybe":                 `--json: expected true or false but got "maybe"`,
		"serve --max-runs=x":                   `--max-runs: expected a whole number but got "x"`,
		"serve --max-runs=9999999999999999999": "--max-runs: the number",
		"serve --rerank-timeout=x":             "--rerank-timeout: expected a duration such as",
		"serve --embedding-weight=x":           "--embedding-weight: expected a number",
		"handovers approve a b x":              `<update>: expected a whole number but got "x"`,
		"agents create --block x":              "--block=x must be LABEL=TEXT",
		"agents create --system .":             `--system: "." exists but is a directory`,
		"memory compress a --index /none/here": "--index: stat /none/here: no such file",
		"eval q":                               "missing flags: --folder=STRING or --archive=STRING or --agent=STRING",
		"eval q --folder=a --agent=b":          "--folder and --agent can't be used together",
		"search q":                             "missing flags: --agent=STRING",
		"search --agent=a":                     `expected "<query>"`,
		"migrate foo":                          "unexpected argument foo",
		"migrate --shards=3":                   "unknown flag --shards",
		"keys create --organization":           "--org needs a value",
	} {
		code, out, errs := command(t, strings.Fields(line)...)
		if code != 2 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("loci %s: got %d, %q, want 2 and %q%s", line, code, errs, want, out)
		}
	}
}

// The command line wins over the environment, and the environment over the defaults.
func TestFlagsWinOverVariables(t *testing.T) {
	asked := "no server answers at http://127.0.0.1:"
	for _, row := range []struct{ url, addr, args, want string }{
		{"127.0.0.1:2", "127.0.0.1:3", "health --addr=127.0.0.1:1", asked + "1 "},
		{"127.0.0.1:2", "127.0.0.1:3", "health", asked + "2 "},
		{"", "127.0.0.1:3", "health", asked + "3 "},
	} {
		for name, value := range map[string]string{"LOCI_URL": row.url, "LOCI_ADDR": row.addr} {
			if t.Setenv(name, value); value == "" {
				os.Unsetenv(name)
			}
		}
		code, _, errs := command(t, strings.Fields(row.args)...)
		if code != 1 || !strings.Contains(errs, row.want) {
			t.Errorf("%+v: got %d, %s", row, code, errs)
		}
	}
	t.Setenv("LOCI_MAX_RUNS", "many")
	want := `--max-runs: expected a whole number but got "many" (from LOCI_MAX_RUNS)`
	if code, _, errs := command(t, "serve", "--addr=nowhere"); code != 2 || !strings.Contains(errs, want) {
		t.Errorf("a variable that is no number: got %d, %s", code, errs)
	}
	if code, _, errs := command(t, "serve", "--max-runs=0", "--addr=nowhere"); code != 2 ||
		!strings.Contains(errs, "LOCI_MAX_RUNS is 0") {
		t.Errorf("the same variable with the flag: got %d, %s", code, errs)
	}
}

// Values may begin with a dash if they are numbers or follow an equals sign, and so may arguments after two dashes.
func TestValuesThatBeginWithADash(t *testing.T) {
	t.Parallel()
	const away = "--addr=127.0.0.1:1"
	for _, args := range [][]string{{"stats", away, "--", "-reader"}, {"search", "q", "--agent=-reader", away},
		{"grep", "a", "b", away, "--context", "-3"}, {"search", "--agent=a", away, "--limit", "-.5e1", "q"}} {
		code, _, errs := command(t, args...)
		number := strings.Contains(errs, `--limit: expected a whole number but got "-.5e1"`)
		if !number && (code != 1 || !strings.Contains(errs, "no server answers")) {
			t.Errorf("%q: got %d, %s", args, code, errs)
		}
	}
}

// The help of a command names all of its flags, with their variables and defaults.
func TestTheHelpNamesFlags(t *testing.T) {
	t.Parallel()
	_, all, _ := command(t, "--help")
	listed := strings.Join(strings.Fields(all), " ")
	for _, leaf := range leaves(t) {
		name := commandName(leaf)
		code, out, errs := command(t, append(strings.Fields(name), "--help")...)
		_, same, _ := command(t, append([]string{"help"}, strings.Fields(name)...)...)
		if code != 0 || errs != "" || out != same || !strings.HasPrefix(out, "Usage: loci "+name) {
			t.Errorf("the help of %s ended with %d: %s\n%s\n%s", name, code, errs, out, same)
		}
		if !strings.Contains(listed, strings.TrimPrefix(leaf.UseLine(), "loci ")+" "+leaf.Short) {
			t.Errorf("the help does not name %s", name)
		}
		words := strings.Join(strings.Fields(out), " ")
		leaf.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			for _, want := range append(f.Annotations[variables], "--"+f.Name, strings.TrimSuffix(f.Usage, "."), f.DefValue) {
				if want != "false" && !strings.Contains(words, want) {
					t.Errorf("the help of %s does not say %q:\n%s", name, want, out)
				}
			}
		})
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "Usage: ") && len(line) > helpWidth+1 {
				t.Errorf("the help of %s has a line of %d columns: %s", name, len(line), line)
			}
		}
	}
}
