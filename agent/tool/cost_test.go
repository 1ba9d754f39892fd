package tool_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall/tokens"
)

// docs/concepts.md states what each set of tools costs.
func TestTheCostOfASetIsDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	tools := tool.New(tool.Memories{})
	for _, set := range []string{agent.DefaultTools, tool.SmallSet, tool.StandardSet, agent.EveryTool} {
		names, err := tools.Choose(tool.Choice{Set: set}, tool.NewAgent(""), false)
		if err != nil {
			t.Fatal(err)
		}
		a := agent.Agent{Settings: agent.Settings{Tools: names}}
		want := fmt.Sprintf("| `%s` | %s (%s) |", strings.ReplaceAll(set, "*", "all"), cost(tools.Definitions(a, true)),
			cost(tools.Definitions(a, false)))
		if !bytes.Contains(docs, []byte(want)) {
			t.Errorf("the sets of docs/concepts.md lack %q", want)
		}
	}
}

// docs/concepts.md states what an agent made for Letta pays for its default tools, and what the tool of working memory
// costs.
func TestTheCostOfLettasToolsIsDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	tools := tool.New(tool.Memories{})
	of := func(names ...string) agent.Agent {
		return agent.Agent{Settings: agent.Settings{Tools: names, MadeFor: agent.ForLetta}}
	}
	letta, worked := of(agent.DefaultTools), of(tool.UpdateWorkingMemory)
	for _, want := range []string{
		fmt.Sprintf("| `default`, made for Letta | %s (%s) |", cost(tools.Definitions(letta, true)),
			cost(tools.Definitions(letta, false))),
		fmt.Sprintf("its definition takes %s tokens", cost(tools.Definitions(worked, false))),
	} {
		if !bytes.Contains(docs, []byte(want)) {
			t.Errorf("docs/concepts.md lacks %q", want)
		}
	}
}

// TestTheDefaultToolsAreCheap counts the default tools at each window, with the vocabulary of gpt-4o and the estimate
// for models without one.
func TestTheDefaultToolsAreCheap(t *testing.T) {
	t.Parallel()
	tools := tool.New(tool.Memories{})
	longest, err := policy.Preset("claude-code") // its bounds take the most words
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"openai/gpt-4o", "ollama/llama3"} {
		for _, window := range []int{4_096, 8_192, 16_384, 200_000} {
			for _, madeFor := range []string{agent.ForLoci, agent.ForLetta} {
				a := agent.Agent{WindowLimit: &window, InForce: longest,
					Settings: agent.Settings{Tools: []string{agent.DefaultTools}, MadeFor: madeFor}}
				without := tokens.Uncalibrated.Of(tokensOf(model, tools.Definitions(a, false)))
				with := tokens.Uncalibrated.Of(tokensOf(model, tools.Definitions(a, true)))
				t.Logf("%s, %s, window %d: %d tokens, %d with a folder", model, madeFor, window, without, with)
				if without > 1_200 || with > 1_900 {
					t.Errorf("%s, made for %s, window %d: the tools take %d tokens, with a folder %d; want at most 1200, 1900",
						model, madeFor, window, without, with)
				}
			}
		}
	}
}

// cost returns the tokens that definitions take in a request to gpt-4o, in the form of the documentation.
func cost(definitions []agent.Definition) string {
	n := tokensOf("openai/gpt-4o", definitions)
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// tokensOf returns the tokens that definitions take in a request to a model.
func tokensOf(model string, definitions []agent.Definition) (n int) {
	var counter tokens.Counter
	for _, d := range definitions {
		n += counter.Count(model, fmt.Sprintf(`{"function":%s,"type":"function"}`, d.Schema))
	}
	return n
}
