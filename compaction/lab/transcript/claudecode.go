package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
)

// isClaudeCode reports whether entries are from a session of Claude Code.
func isClaudeCode(entries []object) bool {
	return slices.ContainsFunc(entries, func(e object) bool {
		return e.isObject("message") && e.text("uuid") != "" && (e.text("type") == "user" || e.text("type") == "assistant")
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
	for _, e := range entries {
		if kind := e.text("type"); !isTurn(e) {
			left[kind]++
			continue
		}
		thread := tree.thread(e)
		i, known := index[thread]
		if !known {
			i = len(all)
			index[thread] = i
			all = append(all, Transcript{Session: thread, Format: ClaudeCode, LeftOut: left})
		}
		if !tree.kept[e.text("uuid")] {
			left["abandoned"]++
			continue
		}
		message, err := d.object(e.fields["message"])
		if err != nil {
			return nil, err
		}
		drafts, err := d.chat(answered(message))
		if err != nil {
			return nil, err
		}
		id := message.text("id")
		if answer := thread + " " + id; id == "" || !counted[answer] {
			all[i].count(message.usage())
			counted[answer] = true
		}
		if id != "" { // an answer has one entry for each of its blocks
			for n := range drafts {
				drafts[n].StepID = &id
			}
		}
		all[i].add(e, drafts)
	}
	return all, nil
}

// tree holds a file's entries by their ids, and which of them lead to the last entry of their thread.
type tree struct {
	byID    map[string]object
	threads map[string]string // of entries of sub-agents
	kept    map[string]bool
}

func newTree(entries []object) tree {
	t := tree{byID: make(map[string]object, len(entries)), threads: map[string]string{}, kept: map[string]bool{}}
	for _, e := range entries {
		t.byID[e.text("uuid")] = e
	}
	last := map[string]object{}
	for _, e := range entries {
		if isTurn(e) {
			last[t.thread(e)] = e
		}
	}
	answers := map[string]bool{} // ids of answers; an answer may have several entries
	for _, e := range last {
		for ok := true; ok && !t.kept[e.text("uuid")]; e, ok = t.byID[parent(e)] {
			t.kept[e.text("uuid")] = true
			answers[answerID(e)] = true
		}
	}
	for _, e := range entries { // parallel calls and their results are side branches of the tree
		siblings := answerID(e) != "" && answers[answerID(e)]
		if siblings || isResult(e) && t.kept[parent(e)] {
			t.kept[e.text("uuid")] = true
		}
	}
	return t
}

// thread returns a key for the thread of an entry: the session id for the main thread, and the id of the first entry
// for a sub-agent's.
func (t tree) thread(e object) string {
	if !e.flag("isSidechain") {
		return e.text("sessionId")
	}
	var passed []string
	var first string
	for {
		id := e.text("uuid")
		if known, ok := t.threads[id]; ok {
			first = known
			break
		}
		t.threads[id] = id // stops if parents form a loop
		passed, first = append(passed, id), id
		before, ok := t.byID[parent(e)]
		if !ok || !before.flag("isSidechain") {
			break
		}
		e = before
	}
	for _, id := range passed {
		t.threads[id] = first
	}
	return first
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
