package tool_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

var toolGroups = [][]string{
	{"open_files", "grep_files", "semantic_search_files", "list_files", "close_files"},
	{"core_memory_append", "core_memory_replace", "memory_insert", "memory_replace", "memory_rethink",
		"memory_apply_patch", "memory"},
	{"memory_files"},
	{"search_memory"},
	{"request_erasure"},
	{"ask_session"},
	{"query_result"},
	{"query_log"},
	{"archival_memory_insert", "archival_memory_search", "archival_memory_update", "archival_memory_delete"},
	{"conversation_search", "expand"},
	{"update_working_memory"},
}

func names() (all []string) {
	for _, t := range tool.New(tool.Memories{}).Tools() {
		all = append(all, t.Name)
	}
	return all
}

// mentioned reports whether a text names a tool. One tool's name is also an ordinary word.
func mentioned(text, name string) bool {
	if name == "memory" {
		name = "the tool memory"
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(text)
}

func TestDefaultInstructionsNameTheToolsThatAreThere(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	choices, all, tools := [][]string{}, names(), tool.New(tool.Memories{})
	for subset := range 1 << len(toolGroups) {
		if subset%scale.Of(5, 1) != 0 {
			continue
		}
		choice := []string{}
		for i, group := range toolGroups {
			if subset&(1<<i) != 0 {
				choice = append(choice, group...)
			}
		}
		choices = append(choices, choice)
	}
	for _, name := range all { // with this tool alone, and with all others
		choices = append(choices, []string{name},
			slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == name }))
	}
	for _, choice := range choices {
		for _, hasFolder := range []bool{true, false} {
			a := agent.Agent{Settings: agent.Settings{Tools: choice}}
			definitions := tools.Definitions(a, hasFolder)
			text := a.Instructions(definitions)
			for _, name := range all {
				has := slices.ContainsFunc(definitions, func(d agent.Definition) bool { return d.Name == name })
				if mentioned(text, name) != has {
					t.Errorf("with %q, folder %t: the instructions name %s: %t, want %t\n%s", choice, hasFolder, name, !has, has,
						text)
				}
			}
		}
	}
}

func TestAnOperatorsInstructionsStay(t *testing.T) {
	t.Parallel()
	a := agent.Agent{System: "Be brief."}
	if got := a.Instructions(tool.New(tool.Memories{}).Definitions(a, true)); got != "Be brief." {
		t.Errorf("the instructions are %q", got)
	}
}

func TestDefaultInstructionsGolden(t *testing.T) {
	t.Parallel()
	var a agent.Agent
	checkGolden(t, "instructions", a.Instructions(tool.New(tool.Memories{}).Definitions(a, true)))
}
