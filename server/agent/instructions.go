package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// toolGroup holds the sentences of the default instructions on the tools of one memory.
type toolGroup struct {
	about string
	tools []toolUse
	after string // a last sentence if the agent has the first of the tools
}

type toolUse struct{ name, use string }

// defaultOpening begins the default instructions.
const defaultOpening = "You are an agent with a memory of your own."

var toolGroups = []toolGroup{
	{"Your documents are listed below, with the views that you have open", []toolUse{
		{"open_files", "open_files shows a document here"},
		{"grep_files", "grep_files finds exact text"},
		{"semantic_search_files", "semantic_search_files finds what fits a question"},
		{"list_files", "list_files names all documents"},
		{"close_files", "close_files makes room"},
	}, "Only so many documents stay open: the one you used least recently is closed first."},
	{"Core memory is short blocks of text that you always see; keep what matters there current", []toolUse{
		{"memory_insert", "memory_insert adds lines"},
		{"memory_replace", "memory_replace changes a passage"},
		{"memory_rethink", "memory_rethink rewrites a block"},
		{"memory_apply_patch", "memory_apply_patch changes several places at once"},
		{"memory", "the tool memory creates, changes and deletes blocks"},
		{"core_memory_append", "core_memory_append adds a line"},
		{"core_memory_replace", "core_memory_replace changes a text wherever a block has it"},
	}, ""},
	{"Archival memory keeps facts for good, out of view", []toolUse{
		{"archival_memory_insert", "archival_memory_insert stores one"},
		{"archival_memory_search", "archival_memory_search finds them"},
		{"archival_memory_update", "archival_memory_update corrects one"},
		{"archival_memory_delete", "archival_memory_delete removes one"},
	}, ""},
	{"Old messages leave your view, and none is lost", []toolUse{
		{"conversation_search", "conversation_search finds them"},
		{"expand", "expand reads a range of them, or a long text, in full"},
	}, ""},
}

// Instructions returns the base instructions of an agent: its operator's, or else a text on the tools that it has.
func (a Agent) Instructions(tools []Definition) string {
	if a.System != "" {
		return a.System
	}
	parts := []string{defaultOpening}
	for _, g := range toolGroups {
		var uses []string
		for _, t := range g.tools {
			if hasTool(tools, t.name) {
				uses = append(uses, t.use)
			}
		}
		if len(uses) == 0 {
			continue
		}
		parts = append(parts, g.about+": "+strings.Join(uses, ", ")+".")
		if g.after != "" && hasTool(tools, g.tools[0].name) {
			parts = append(parts, g.after)
		}
	}
	return strings.Join(parts, " ")
}

// toolset returns tools as a recall.Toolset.
func toolset(tools []Definition) recall.Toolset {
	return func(name string) bool { return hasTool(tools, name) }
}

func hasTool(tools []Definition, name string) bool {
	return slices.ContainsFunc(tools, func(d Definition) bool { return d.Name == name })
}

// definitions returns the tools of an agent.
func (s *Store) definitions(ctx context.Context, org db.Org, a Agent) ([]Definition, error) {
	has, err := s.Files.HasFolder(ctx, org, a.ID)
	if err != nil || s.Tools == nil {
		return nil, err
	}
	return s.Tools(a, has), nil
}
