package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command shows the change, and makes it only if the operator agrees.
func TestCompressMemoryCommand(t *testing.T) {
	t.Parallel()
	r := tenant(t).remote()
	var tree struct{ ID string }
	if err := r.send(t.Context(), http.MethodPost, "/v1/memory-trees", map[string]any{"name": "team",
		"rules": map[string]any{"off": []string{"*"}}}, &tree); err != nil {
		t.Fatal(err)
	}
	const file, old = "/memories/MEMORY.md", "# Memory\n\n## Staging\n\nThe staging host is s2.\n"
	path := "/v1/memory-trees/" + tree.ID + "/file"
	index := map[string]string{"path": file, "content": old}
	if err := r.send(t.Context(), http.MethodPut, path, index, new(any)); err != nil {
		t.Fatal(err)
	}
	grown := filepath.Join(t.TempDir(), "MEMORY.md")
	if err := os.WriteFile(grown, []byte("## Release\n\nThe release is on Friday.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const absentTree = "tree-123e4567-e89b-42d3-8456-426614174000"
	const absentAgent = "agent-123e4567-e89b-42d3-8456-426614174000"
	for _, w := range []struct {
		command memoryCompressCmd
		answer  string
		fails   string
		want    string // in the index afterwards
	}{
		{memoryCompressCmd{}, "", "nothing was changed", "The staging host"},
		{memoryCompressCmd{}, "no\n", "nothing was changed", "The staging host"},
		{memoryCompressCmd{}, "y\n", "", "| Staging | /memories/infra/staging.md |"},
		{memoryCompressCmd{}, "y\n", "the index has no line to move", "| Staging | /memories/infra/staging.md |"},
		{memoryCompressCmd{Index: grown, Yes: true}, "", "", "| Release | /memories/projects/release.md |"},
		{memoryCompressCmd{memoryTree: memoryTree{Of: absentTree}}, "", "not found", "| Release |"},
		{memoryCompressCmd{memoryTree: memoryTree{Of: absentAgent}}, "", "not found", "| Release |"},
	} {
		w.command.remote = r
		if w.command.Of == "" {
			w.command.Of = tree.ID
		}
		out, errs := newLines(), newLines()
		err := w.command.Run(t.Context(), streams{out, errs, strings.NewReader(w.answer)})
		if (err != nil) != (w.fails != "") || err != nil && !strings.Contains(err.Error(), w.fails) {
			t.Errorf("%+v %q: got %v", w.command, w.answer, err)
		}
		if err == nil && (!strings.Contains(out.String(), "+# ") || !strings.Contains(errs.String(), "Wrote 2 files.")) {
			t.Errorf("it printed\n%s\n%s", out, errs)
		}
		var stored struct{ Content string }
		if err := r.get(t.Context(), path+"?path="+file, &stored); err != nil || !strings.Contains(stored.Content, w.want) {
			t.Errorf("%+v %q: the index is %q (%v), want %q", w.command, w.answer, stored.Content, err, w.want)
		}
	}
}
