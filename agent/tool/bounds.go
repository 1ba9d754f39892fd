package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// boundsOf maps a tool → function that returns the sentences about its bounds for a caller, which follow its
// description. They depend on the settings of the agent and its policy alone, so that a provider's cache stays valid.
var boundsOf = map[string]func(Caller) string{
	"open_files": openBounds,
	"grep_files": grepBounds,
	"expand":     expandBounds,

	agent.LoadSkill: skillBounds,

	StartSubagent: definedSubagents,
}

// filterArgument is the argument filter in the schema of a tool.
var filterArgument = regexp.MustCompile(`,"filter":\{"type":"object","description":"(?:[^"\\]|\\.)*"\}`)

// boundedFor returns the tool with a description that states the bounds in force for a caller. The tools of an agent
// that is made for Letta take a filter, too, but do not mention it: Letta's have none, and it takes tokens.
func (t Tool) boundedFor(c Caller) Tool {
	if c.Agent.MadeFor() == agent.ForLetta {
		t.Schema = filterArgument.ReplaceAll(t.Schema, nil)
	}
	of, ok := boundsOf[t.Name]
	if !ok {
		return t
	}
	sentences := of(c)
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

func openBounds(c Caller) string {
	limits := c.Agent.Limits()
	s := fmt.Sprintf("At most %s open, at most %s characters each; the least recently used closes.",
		opened(limits.MaxOpen),
		thousands(limits.ViewChars))
	b := c.Agent.InForce.ReadBounds()
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

func grepBounds(c Caller) string {
	b := c.Agent.InForce.ReadBounds()
	if b == nil {
		return ""
	}
	s := "At most " + page(b)
	if b.MaxMatchChars > 0 {
		s += fmt.Sprintf("; lines are cut at %s characters", thousands(b.MaxMatchChars))
	}
	return s + "."
}

func skillBounds(c Caller) string {
	return fmt.Sprintf("Shows at most %s characters of a skill.", thousands(c.maxChars()))
}

func expandBounds(c Caller) string {
	least := recall.MaxResultChars
	for _, step := range c.Agent.InForce.Steps {
		if o, ok := step.(*policy.Offload); ok {
			least = min(least, o.MaxResultChars)
		}
	}
	usual, most := pageBytes(c)
	shows := fmt.Sprintf("Shows %s bytes at once", thousands(usual))
	if usual < most {
		shows += fmt.Sprintf(", with limit at most %s", thousands(most))
	}
	return fmt.Sprintf("%s. Results above %s characters are previewed.", shows, thousands(least))
}
