package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// boundsOf maps a tool → function that returns the sentences about its bounds for an agent, which follow its
// description. They depend on the settings of the agent and its policy alone, so that a provider's cache stays valid.
var boundsOf = map[string]func(agent.Agent) string{
	"open_files": openBounds,
	"grep_files": grepBounds,
	"expand":     expandBounds,

	StartSubagent: definedSubagents,
}

// boundedFor returns the tool with a description that states the bounds in force for an agent.
func (t Tool) boundedFor(a agent.Agent) Tool {
	of, ok := boundsOf[t.Name]
	if !ok {
		return t
	}
	sentences := of(a)
	if sentences == "" {
		return t
	}
	about, examples, hasExamples := strings.Cut(t.Description, "\n\n")
	described := about + " " + sentences
	if hasExamples {
		described += "\n\n" + examples
	}
	t.Description = described
	t.Schema = withDescription(t.Schema, described)
	return t
}

// withDescription returns the schema of a built-in tool with another description.
func withDescription(raw json.RawMessage, description string) json.RawMessage {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("tool: a schema is broken: " + err.Error()) // it is part of the program
	}
	s.Description = description
	return json.RawMessage(literal(s))
}

func openBounds(a agent.Agent) string {
	limits := a.Limits()
	s := fmt.Sprintf("At most %s open, at most %s characters each; the least recently used closes.",
		opened(limits.MaxOpen),
		thousands(limits.ViewChars))
	b := a.InForce.ReadBounds()
	switch {
	case b == nil:
	case b.Refuses():
		s += fmt.Sprintf(" Above %s a read is refused: give line and length.", gate(b))
	default:
		s += fmt.Sprintf(" include_content shows at most %s.", page(b))
	}
	return s
}

func opened(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return thousands(n) + " files are"
}

func grepBounds(a agent.Agent) string {
	b := a.InForce.ReadBounds()
	if b == nil {
		return ""
	}
	s := "At most " + page(b)
	if b.MaxMatchChars > 0 {
		s += fmt.Sprintf("; lines are cut at %s characters", thousands(b.MaxMatchChars))
	}
	return s + "."
}

func expandBounds(a agent.Agent) string {
	least := recall.MaxResultChars
	for _, step := range a.InForce.Steps {
		if o, ok := step.(*policy.Offload); ok {
			least = min(least, o.MaxResultChars)
		}
	}
	s := fmt.Sprintf("Results above %s characters are previewed.", thousands(least))
	if most := (Caller{Agent: a}).maxChars(); most < recall.ExpandBytes {
		s += fmt.Sprintf(" Shows %d bytes at once.", most)
	}
	return s
}
