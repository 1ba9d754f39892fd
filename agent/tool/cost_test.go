package tool_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
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
	for _, set := range []string{tool.SmallSet, tool.StandardSet, agent.EveryTool} {
		names, err := tools.Choose(tool.Choice{Set: set}, tool.NewAgent(), false)
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

// cost returns the tokens that definitions take in a request to gpt-4o, in the form of the documentation.
func cost(definitions []agent.Definition) string {
	var counter tokens.Counter
	n := 0
	for _, d := range definitions {
		n += counter.Count("openai/gpt-4o", fmt.Sprintf(`{"function":%s,"type":"function"}`, d.Schema))
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
