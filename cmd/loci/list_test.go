package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command that a user runs takes --json, but those whose output has a form of its own.
func TestCommandsPrintJSON(t *testing.T) {
	t.Parallel()
	without := []string{"serve", "mcp", "completion"}
	for _, leaf := range leaves(t) {
		name := nameOf(leaf)
		takes := slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "json" })
		if takes == slices.Contains(without, name) {
			t.Errorf("loci %s takes --json: %t", name, takes)
		}
	}
}

// What a command prints with --json is one value, and no other text.
func TestCommandsAnswerInJSON(t *testing.T) {
	t.Parallel()
	p, dir := tenant(t), t.TempDir()
	session, texts := filepath.Join(dir, "session.jsonl"), filepath.Join(dir, "texts")
	if err := errors.Join(os.WriteFile(session, []byte(`{"role":"user","content":"Where is it set?"}`+"\n"), 0o600),
		os.WriteFile(texts, []byte("Ann Lee\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	agent := call[identified](p, "POST", "/v1/agents/", map[string]any{"name": "a"}).ID
	file := filepath.Join(dir, "a.af")
	remotely, locally := p.asking(), []string{"--database-url=" + sharedURL(t)}
	for _, row := range []struct {
		place      []string
		args, want string
	}{
		{remotely, "agents export " + agent + " " + file, `"bytes": `},
		{remotely, "export " + agent, `"agents"`},
		{remotely, "agents import " + file, `"agent_ids": [`},
		{remotely, "import sessions " + session, `"messages_added": 1`},
		{remotely, "erase --dry-run " + texts, `"found": {`},
		{remotely, "erase --yes " + texts, `"status": "completed"`},
		{nil, "lab replay --policy=letta " + session, `"results": [`},
		{locally, "migrate", `"indexes_built": 0`},
		{locally, "migrate plan --citus", `"sql": "`},
	} {
		code, out, errs := command(t, append(append(strings.Fields(row.args), "--json"), row.place...)...)
		if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, row.want) {
			t.Errorf("loci %s ended with %d, want %s: %s%s", row.args, code, row.want, out, errs)
		}
	}
}

// The documents say of each command whether it asks a server or works on the database, as its flags have it.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "They are of three kinds:")
	section, _, _ = strings.Cut(section, "Every command but")
	kinds := strings.Split(section, "\n- ")[1:]
	for _, leaf := range leaves(t) {
		has := map[string]bool{}
		for _, f := range slices.Concat(leaf.AllFlags(false)...) {
			has[f.Name] = true
		}
		name, kind := nameOf(leaf), 2
		if has["database-url"] {
			kind = 1
		} else if has["addr"] {
			kind = 0
		}
		group, _, _ := strings.Cut(name, " ")
		if name != "serve" && !strings.Contains(kinds[kind], "`"+name+"`") && !strings.Contains(kinds[kind], "`"+group+"`") {
			t.Errorf("docs/operations.md does not list loci %s with\n%s", name, kinds[kind])
		}
	}
}

func leaves(t *testing.T) []*kong.Node {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Name("loci"), kong.BindTo(t.Context(), (*context.Context)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Leaves(true)
}

// nameOf returns the words of a command.
func nameOf(leaf *kong.Node) string {
	return commandName(strings.TrimPrefix(leaf.Path(), "loci "))
}
