package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// isClaudeCode reports whether entries are from a session of Claude Code.
func isClaudeCode(entries []object) bool {
	return slices.ContainsFunc(entries, func(e object) bool {
		return e.isObject("message") && (e.text("type") == "user" || e.text("type") == "assistant")
	})
}

// claudeCode reads sessions of Claude Code: the main session, and one for each sub-agent. It leaves out branches that
// the user went back from, and summaries of Claude Code's own compactions, because the messages that these replaced are
// there.
func (d document) claudeCode(entries []object) ([]Transcript, error) {
	tree := newTree(entries)
	var all []Transcript
	index := map[string]int{} // thread → index in all
	left, counted := map[string]int{}, map[string]bool{}
	for n, e := range entries {
		if kind := e.text("type"); !isTurn(e) {
			left[kind]++
			continue
		}
		thread := tree.threads[n]
		i, known := index[thread]
		if !known {
			i = len(all)
			index[thread] = i
			all = append(all, Transcript{Session: thread, Format: ClaudeCode, LeftOut: map[string]int{}})
		}
		if !tree.kept[n] {
			all[i].leaveOut(abandoned)
			continue
		}
		message, err := d.object(e.fields["message"])
		if err != nil {
			return nil, err
		}
		drafts, err := d.chat(answered(message))
		if d.refuses(err) {
			return nil, err
		}
		id := message.text("id")
		if answer := thread + " " + id; id == "" || !counted[answer] {
			all[i].count(len(all[i].Drafts), message.usage(), message.text("model"))
			counted[answer] = true
		}
		if id != "" { // an answer has one entry for each of its blocks
			for n := range drafts {
				drafts[n].StepID = &id
			}
		}
		all[i].add(e, drafts)
	}
	if len(all) > 0 {
		for kind, n := range left {
			all[0].LeftOut[kind] += n
		}
	}
	return all, nil
}

// tree holds which of a file's entries lead to the last entry of their thread. Entries are named by their indexes.
type tree struct {
	entries []object
	byID    map[string]int
	parents []int    // -1: none
	threads []string // the session's id, or for a sub-agent's entries the id of its first entry, or of the agent
	kept    []bool
}

const none = -1

func newTree(entries []object) *tree {
	t := &tree{entries: entries, byID: make(map[string]int, len(entries)), parents: make([]int, len(entries)),
		threads: make([]string, len(entries)), kept: make([]bool, len(entries))}
	for i, e := range entries {
		if id := e.text("uuid"); id != "" {
			t.byID[id] = i
		}
	}
	for i, e := range entries {
		before, named := t.byID[parent(e)]
		if t.parents[i] = none; named {
			t.parents[i] = before
		}
	}
	for i := range entries {
		t.threads[i] = t.thread(i)
	}
	t.inOrder()
	last := map[string]int{}
	for i, e := range entries {
		if isTurn(e) {
			last[t.threads[i]] = i
		}
	}
	answers := map[string]bool{} // ids of answers; an answer may have several entries
	for _, i := range last {
		for ; i != none && !t.kept[i]; i = t.parents[i] {
			t.kept[i] = true
			answers[answerID(entries[i])] = true
		}
	}
	for i, e := range entries { // parallel calls and their results are side branches of the tree
		siblings := answerID(e) != "" && answers[answerID(e)]
		if siblings || isResult(e) && t.parents[i] != none && t.kept[t.parents[i]] {
			t.kept[i] = true
		}
	}
	return t
}

// inOrder gives an entry that does not say what it follows, or follows an entry that is not in the file, the turn
// before it in its thread. An entry that names no parent begins a branch, unless no entry of its thread names one.
func (t *tree) inOrder() {
	named := map[string]bool{}
	for i, e := range t.entries {
		named[t.threads[i]] = named[t.threads[i]] || isTurn(e) && parent(e) != ""
	}
	last := map[string]int{}
	for i, e := range t.entries {
		if !isTurn(e) {
			continue
		}
		thread := t.threads[i]
		_, says := e.fields["parentUuid"]
		before, follows := last[thread]
		if t.parents[i] == none && follows && (!says || parent(e) != "" || !named[thread]) {
			t.parents[i] = before
		}
		last[thread] = i
	}
}

// thread returns the thread of an entry.
func (t *tree) thread(i int) string {
	if !t.entries[i].flag("isSidechain") {
		return t.entries[i].text("sessionId")
	}
	var passed []int
	for t.threads[i] == "" {
		t.threads[i] = t.own(t.entries[i]) // stops if parents form a loop
		passed = append(passed, i)
		before := t.parents[i]
		if before == none || !t.entries[before].flag("isSidechain") {
			break
		}
		i = before
	}
	for _, p := range passed {
		t.threads[p] = t.threads[i]
	}
	return t.threads[i]
}

// own returns the thread that an entry of a sub-agent begins.
func (*tree) own(e object) string {
	if _, says := e.fields["parentUuid"]; says {
		return cmp.Or(e.text("uuid"), e.text("agentId"), "a sub-agent")
	}
	return cmp.Or(e.text("agentId"), "a sub-agent of "+e.text("sessionId"))
}

// answerID returns the id of the model's answer that an entry belongs to; empty if there is none.
func answerID(e object) string {
	var m struct {
		ID string `json:"id"`
	}
	if e.text("type") != "assistant" || json.Unmarshal(e.fields["message"].raw, &m) != nil {
		return ""
	}
	return m.ID
}

// isResult reports whether an entry is a tool's result.
func isResult(e object) bool {
	return e.text("type") == "user" && bytes.Contains(e.fields["message"].raw, []byte(`"tool_result"`))
}

// isTurn reports whether an entry is a message of the session.
func isTurn(e object) bool {
	kind := e.text("type")
	return (kind == "user" || kind == "assistant") && e.isObject("message") && !e.flag("isCompactSummary") &&
		!e.flag("isApiErrorMessage")
}

// parent returns the id of the entry before e. At a compaction that is the logical parent.
func parent(e object) string {
	if id := e.text("parentUuid"); id != "" {
		return id
	}
	return e.text("logicalParentUuid")
}
