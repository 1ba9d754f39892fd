package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
)

// isClaudeCode reports whether entries are of a session of Claude Code.
func isClaudeCode(entries []object) bool {
	return slices.ContainsFunc(entries, func(e object) bool {
		return e.isObject("message") && e.text("uuid") != "" && (e.text("type") == "user" || e.text("type") == "assistant")
	})
}

// claudeCode reads sessions of Claude Code: the main one, and each of a sub-agent. Branches that were left by going
// back are left out, and so are the summaries of its own compactions: the messages that they replaced are there.
func (d document) claudeCode(entries []object) ([]Transcript, error) {
	tree := newTree(entries)
	var all []Transcript
	index := map[string]int{} // in all, by thread
	left := map[string]int{}
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
		if id := message.text("id"); id != "" { // an answer is an entry for each of its blocks
			for n := range drafts {
				drafts[n].StepID = &id
			}
		}
		all[i].add(e, drafts)
	}
	return all, nil
}

// tree holds the entries of a file by their ids, and which of them lead to the last of their thread.
type tree struct {
	byID    map[string]object
	threads map[string]string // of sub-agents' entries
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
	answers := map[string]bool{} // by their ids, since an answer is several entries
	for _, e := range last {
		for ok := true; ok && !t.kept[e.text("uuid")]; e, ok = t.byID[parent(e)] {
			t.kept[e.text("uuid")] = true
			answers[answerID(e)] = true
		}
	}
	for _, e := range entries { // the entries of calls that were made together, and their results, are branches
		siblings := answerID(e) != "" && answers[answerID(e)]
		if siblings || isResult(e) && t.kept[parent(e)] {
			t.kept[e.text("uuid")] = true
		}
	}
	return t
}

// thread returns what tells apart the threads of a file: the session of the main one, and the first entry of each
// sub-agent's.
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
		t.threads[id] = id // ends a loop of parents
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

// answerID returns the id of the answer of a model that an entry is of; empty if it is of none.
func answerID(e object) string {
	var m struct {
		ID string `json:"id"`
	}
	if e.text("type") != "assistant" || json.Unmarshal(e.fields["message"].raw, &m) != nil {
		return ""
	}
	return m.ID
}

// isResult reports whether an entry is the result of a tool.
func isResult(e object) bool {
	return e.text("type") == "user" && bytes.Contains(e.fields["message"].raw, []byte(`"tool_result"`))
}

// isTurn reports whether an entry is a message of the session.
func isTurn(e object) bool {
	kind := e.text("type")
	return (kind == "user" || kind == "assistant") && e.isObject("message") && !e.flag("isCompactSummary") &&
		!e.flag("isApiErrorMessage")
}

// parent returns the id of the entry before one; before a compaction that is its logical parent.
func parent(e object) string {
	if id := e.text("parentUuid"); id != "" {
		return id
	}
	return e.text("logicalParentUuid")
}
