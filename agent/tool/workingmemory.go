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

	// Some models write a single change, or entries by their fields, outside of changes.
	Field     text            `json:"field" schema:"-"`
	Action    text            `json:"action" schema:"-"`
	Text      selection       `json:"text" schema:"-"`
	Old       selection       `json:"old" schema:"-"`
	Evidence  selection       `json:"evidence" schema:"-"`
	Task      selection       `json:"task" schema:"-"`
	Files     list[selection] `json:"important_files" schema:"-"`
	Decisions list[selection] `json:"decisions" schema:"-"`
	Questions list[selection] `json:"open_questions" schema:"-"`
	Next      selection       `json:"next" schema:"-"`
	Blockers  list[selection] `json:"blockers" schema:"-"`
	LastEdit  selection       `json:"last_edit" schema:"-"`
}

// all returns the changes of a call, wherever it has them.
func (a workingArgs) all() []workingChange {
	all := slices.Clone(a.Changes)
	if a.Field != "" {
		all = append(all, workingChange{a.Field, a.Action, a.Text, a.Old, a.Evidence})
	}
	for _, f := range []struct {
		field   working.Field
		entries []selection
	}{{working.Task, []selection{a.Task}}, {working.ImportantFiles, a.Files}, {working.Decisions, a.Decisions},
		{working.OpenQuestions, a.Questions}, {working.Next, []selection{a.Next}}, {working.Blockers, a.Blockers},
		{working.LastEdit, []selection{a.LastEdit}}} {
		for _, entry := range f.entries {
			if entry != "" {
				all = append(all, workingChange{Field: text(f.field), Text: entry})
			}
		}
	}
	return all
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
	given := a.all()
	changes := make([]working.Change, len(given))
	for i, x := range given {
		changes[i] = working.Change{Field: working.Field(x.Field), Action: string(x.Action), Text: string(x.Text),
			Old: string(x.Old), Evidence: string(x.Evidence), Pasted: true}
	}
	t := working.Target{AgentID: c.Agent.ID, Conversation: cmp.Or(c.Conversation, recall.DefaultConversation),
		Author: working.Author{Kind: working.ByAgent}, Window: c.Agent.Window()}
	changed, was, err := m.Working.ChangeFrom(ctx, c.Org, t, changes)
	return Result{Text: workingText(was, changed, t.Window, c.has())}, err
}

// workingText returns the result text that says what a change of a working memory changed.
func workingText(was working.Record, m working.Memory, window int, has recall.Toolset) string {
	lines := working.Differences(was, m.Record)
	size := fmt.Sprintf("(version %d, %d tokens)", m.Version, m.Tokens)
	switch {
	case len(lines) == 0:
		return "The working memory " + size + " has this already; nothing changed."
	case m.Text == "":
		return "The working memory has been updated " + size + ". It is empty now."
	}
	return "The working memory has been updated " + size + "." + advice(m, window, has) + "\n" + strings.Join(lines, "\n")
}

// blockTools lists the tools that write a core memory block. A result names the first one that the agent has.
var blockTools = []string{"memory_insert", "memory", "core_memory_append"}

// advice tells a model what to move out of a working memory that is too large, and where to. It is empty if the memory
// is not too large.
func advice(m working.Memory, window int, has recall.Toolset) string {
	healthy, most := working.LimitsIn(window)
	if m.Tokens <= healthy {
		return ""
	}
	text := fmt.Sprintf(" It is above %d tokens, and a change that brings it above %d is refused. Its largest fields are "+
		"%s. Remove what is settled, and shorten entries to pointers", healthy, most,
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
