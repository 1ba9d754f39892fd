package tool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
)

func TestEachToolHasHints(t *testing.T) {
	t.Parallel()
	for _, tl := range tool.New(tool.Memories{}).Tools() {
		h := tl.Hints()
		if h.Title == "" || h.Group == "" {
			t.Errorf("%s has the hints %+v, want a title and a group", tl.Name, h)
		}
		if h.ReadOnly && (h.Destructive || h.Idempotent) {
			t.Errorf("%s only reads, and its hints are %+v", tl.Name, h)
		}
	}
}

func TestToolsAreChosenByNameAndGroup(t *testing.T) {
	t.Parallel()
	set := tool.New(tool.Memories{})
	got, err := set.Chosen([]string{"archival", "open_files", "others"}, map[string]string{"extra": "others"})
	want := []string{"archival_memory_insert", "archival_memory_search", "archival_memory_update",
		"archival_memory_delete", "open_files", "extra"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	_, err = set.Chosen([]string{"everything"}, map[string]string{"extra": "others"})
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "memory_files, others, recall") ||
		!strings.Contains(err.Error(), "extra") {
		t.Errorf("got %v for an unknown word, want an ErrInvalid with all groups and tools", err)
	}
}

// A name is known whatever a model writes around it.
func TestNamesThatAreNearlyRightAreKnown(t *testing.T) {
	t.Parallel()
	for called, want := range map[string]string{"functions.memory": "memory", "default_api.memory": "memory",
		"mcp__loci__search_memory": "search_memory", "memory()": "memory", "Open-Files": "open_files",
		"search_memories": "search_memory", "lamp": "lamp", "shop.lamp": "shop.lamp", "": "", ".": ".", "__": "__"} {
		if got := tool.Named(called); got != want {
			t.Errorf("%q is %q, want %q", called, got, want)
		}
	}
}
