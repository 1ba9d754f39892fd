package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// UpdateWorkingMemory is the name of the tool that changes working memory.
const UpdateWorkingMemory = "update_working_memory"

type workingArgs struct {
	Changes list[workingChange] `json:"changes"`
}

// workingChange is a change of an entry. Its texts are selections, because a model copies them from its prompt.
type workingChange struct {
	Field    text      `json:"field"`
	Action   text      `json:"action"`
	Text     selection `json:"text"`
	Old      selection `json:"old"`
	Evidence selection `json:"evidence"`
}

func (c *workingChange) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	if raw[0] != '{' {
		return db.Invalid(`A change is an object, such as {"field": "task", "text": "Make uploads resumable"}; got %s.`,
			echo(string(raw)))
	}
	type plain workingChange // the same type without this method
	return decode("a change", raw, (*plain)(c))
}

func (m Memories) updateWorkingMemory(ctx context.Context, c Caller, a workingArgs) (Result, error) {
	changes := make([]working.Change, len(a.Changes))
	for i, x := range a.Changes {
		changes[i] = working.Change{Field: working.Field(x.Field), Action: string(x.Action), Text: string(x.Text),
			Old: string(x.Old), Evidence: string(x.Evidence), Pasted: true}
	}
	t := working.Target{AgentID: c.Agent.ID, Conversation: cmp.Or(c.Conversation, recall.DefaultConversation),
		Author: working.Author{Kind: working.ByAgent}}
	changed, err := m.Working.Change(ctx, c.Org, t, changes)
	return Result{Text: workingText(changed, c.has())}, err
}

// workingText returns the result text that shows a working memory after a change.
func workingText(m working.Memory, has recall.Toolset) string {
	head := fmt.Sprintf("The working memory has been updated (version %d, %d tokens).", m.Version, m.Tokens)
	if m.Text == "" {
		return head + " It is empty now."
	}
	return head + advice(m, has) + " It now reads:\n" + m.Text
}

// blockTools lists the tools that write a core memory block. A result names the first one that the agent has.
var blockTools = []string{"memory_insert", "memory", "core_memory_append"}

// advice tells a model what to move out of a working memory that is too large, and where to. It is empty if the memory
// is not too large.
func advice(m working.Memory, has recall.Toolset) string {
	if m.Tokens <= working.HealthyTokens {
		return ""
	}
	text := fmt.Sprintf(" It is above %d tokens, and a change that brings it above %d is refused. Its largest fields are "+
		"%s. Remove what is settled, and shorten entries to pointers", working.HealthyTokens, working.MaxTokens,
		strings.Join(working.Largest(m.Record), ", "))
	block := slices.IndexFunc(blockTools, func(name string) bool { return has.Hint(name, name) != "" })
	places := has.Hint("archival_memory_insert", "decisions that must last belong in archival memory "+
		"(archival_memory_insert), ")
	if block >= 0 {
		places += "facts that you always need in a core memory block (" + blockTools[block] + "), "
	}
	places += has.Hint("memory_files", "details of a topic in a memory file (memory_files), ")
	places += has.Hint("expand", "and details of what was said need no copy: expand reads them by their seq, ")
	if places == "" {
		return text + "."
	}
	return text + ": " + strings.TrimPrefix(strings.TrimSuffix(places, ", "), "and ") + "."
}
