// Package working keeps the working memory of conversations: one structured record per conversation about the state of
// the agent's task. The record is in every prompt. The package keeps every version of a record, and detects when the
// evidence of an entry has changed.
//
// Each file uses only the files named before it:
//   - records, and the evidence of their entries: working.go evidence.go stale.go store.go change.go
//   - versions, and how records change: version.go churn.go
//   - handovers, the automatic mode, and the file of an agent: handover.go observe.go portable.go
package working

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// Limits of a record, in tokens as a prompt shows it. In small windows they are lower; see LimitsIn.
const (
	HealthyTokens  = 800   // a larger record should be shortened
	MaxTokens      = 1_500 // a change that makes the record larger is refused
	MaxEditTokens  = 400   // tokens of last_edit
	MaxImportant   = 7     // important files
	maxChanges     = 50    // changes per call
	maxChangeBytes = 100_000
)

// windowShare: a record has at most one eighth of a window.
const windowShare = 8

// LimitsIn returns from how many tokens on a record should be shortened, and how many it may have, in a window of so
// many tokens; 0 is an unknown window.
func LimitsIn(window int) (healthy, most int) {
	if window <= 0 {
		return HealthyTokens, MaxTokens
	}
	most = min(MaxTokens, window/windowShare)
	return min(HealthyTokens, most*HealthyTokens/MaxTokens), most
}

// Field is a field of a record.
type Field string

// The fields, in the order in which a prompt shows them.
const (
	Task           Field = "task"
	ImportantFiles Field = "important_files"
	Decisions      Field = "decisions"
	OpenQuestions  Field = "open_questions"
	Next           Field = "next"
	Blockers       Field = "blockers"
	LastEdit       Field = "last_edit"
)

// Fields lists all fields.
var Fields = []Field{Task, ImportantFiles, Decisions, OpenQuestions, Next, Blockers, LastEdit}

// single reports whether a field has at most one entry.
func (f Field) single() bool { return f == Task || f == Next || f == LastEdit }

// Entry is an entry of a record. Seq is the position of its evidence in the agent's log.
type Entry struct {
	Text     string    `json:"text"`
	Seq      int64     `json:"seq" doc:"Position of the entry's evidence in the agent's log."`
	Evidence *Evidence `json:"evidence" doc:"What the entry rests on, if later events can contradict it."`
	Stale    *int64    `json:"stale_since" doc:"Position of the event that contradicts the evidence; null if none does."`
}

// The kinds of evidence.
const (
	OfFile = "file" // a file in one of the agent's folders
	OfCall = "call" // a tool call
)

// Evidence is what an entry is based on: a file's content or a tool call's result, as a hash.
type Evidence struct {
	Kind      string `json:"kind" enum:"file,call" doc:"A file of the agent's folders, or a call of a tool."`
	Name      string `json:"name" doc:"Of the file, with its folder, or of the tool."`
	Arguments string `json:"arguments_sha256,omitempty" doc:"Of the call."`
	SHA256    string `json:"sha256" doc:"Of the file's original or of the call's result, in hexadecimal digits."`
}

// Record is a working memory.
type Record struct {
	Task           *Entry  `json:"task" doc:"One line; null if there is none."`
	ImportantFiles []Entry `json:"important_files" doc:"At most 7 paths, the newest last."`
	Decisions      []Entry `json:"decisions" doc:"What was decided, one line each."`
	OpenQuestions  []Entry `json:"open_questions" doc:"What is not answered yet, one line each."`
	Next           *Entry  `json:"next" doc:"The next action."`
	Blockers       []Entry `json:"blockers" doc:"What holds the task up, one line each."`
	LastEdit       *Entry  `json:"last_edit" doc:"The newest diff."`

	Continues string `json:"continues,omitempty" doc:"The conversation whose hand-over this one began with."`
}

// place returns where a record stores a field: one for a field with a single entry, else list. The other is nil.
func (r *Record) place(f Field) (one **Entry, list *[]Entry) {
	switch f {
	case Task:
		return &r.Task, nil
	case Next:
		return &r.Next, nil
	case LastEdit:
		return &r.LastEdit, nil
	case ImportantFiles:
		return nil, &r.ImportantFiles
	case Decisions:
		return nil, &r.Decisions
	case OpenQuestions:
		return nil, &r.OpenQuestions
	}
	return nil, &r.Blockers
}

// Entries returns the entries of a field.
func (r Record) Entries(f Field) []Entry {
	one, list := r.place(f)
	switch {
	case list != nil:
		return *list
	case *one != nil:
		return []Entry{**one}
	}
	return nil
}

func (r *Record) set(f Field, entries []Entry) {
	one, list := r.place(f)
	switch {
	case list != nil:
		*list = entries
	case len(entries) > 0:
		*one = &entries[len(entries)-1]
	default:
		*one = nil
	}
}

// IsEmpty reports whether a record has no entries and continues no conversation.
func (r Record) IsEmpty() bool {
	return r.Continues == "" && !slices.ContainsFunc(Fields, func(f Field) bool { return len(r.Entries(f)) > 0 })
}

// clone returns a copy that shares no entry with r. Its lists are not nil.
func (r Record) clone() (c Record) {
	c.Continues = r.Continues
	for _, f := range Fields {
		c.set(f, append([]Entry{}, r.Entries(f)...))
	}
	return c
}

// each calls do with each entry of r, which must be a copy.
func (r *Record) each(do func(*Entry)) {
	for _, f := range Fields {
		one, list := r.place(f)
		if list == nil {
			if *one != nil {
				do(*one)
			}
			continue
		}
		for i := range *list {
			do(&(*list)[i])
		}
	}
}

// unmarked returns a copy without the marks of stale entries.
func (r Record) unmarked() Record {
	c := r.clone()
	c.each(func(e *Entry) { e.Stale = nil })
	return c
}

// same reports whether two records have equal entries. Marks of stale entries are ignored.
func same(a, b Record) bool {
	x, _ := json.Marshal(a.unmarked())
	y, _ := json.Marshal(b.unmarked())
	return string(x) == string(y)
}

// staleNote explains the marks in a record with stale entries.
const staleNote = frame.StaleExplained + "\n"

// Render returns a record as a prompt shows it, or "" if it has no entries. Equal records give equal bytes. Texts are
// neutralized, so that no entry can end the section or look like another entry.
func Render(r Record) string {
	if r.IsEmpty() {
		return ""
	}
	var b strings.Builder
	b.WriteString("<working_memory>\n")
	stale := false
	r.each(func(e *Entry) { stale = stale || e.Stale != nil })
	if stale {
		b.WriteString(staleNote)
	}
	if r.Continues != "" {
		b.WriteString("continues: " + frame.Neutralize(r.Continues) + "\n")
	}
	for _, f := range Fields {
		b.WriteString(renderField(f, r.Entries(f)))
	}
	b.WriteString("</working_memory>")
	return b.String()
}

func renderField(f Field, entries []Entry) string {
	if len(entries) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(string(f) + ":")
	for _, e := range entries {
		text := frame.Neutralize(e.Text)
		switch {
		case f == LastEdit:
			b.WriteString(strings.TrimRight(" "+e.label(), " ") + "\n<last_edit>\n" + text + "\n</last_edit>")
		case f.single():
			b.WriteString(" " + e.label() + text)
		default:
			b.WriteString("\n- " + e.label() + text)
		}
	}
	return b.String() + "\n"
}

// label returns the label with which a prompt begins an entry, including a space. It is empty for an entry without a
// position.
func (e Entry) label() string {
	switch {
	case e.Stale != nil:
		return fmt.Sprintf(frame.StalePosition+" ", e.Seq, *e.Stale)
	case e.Seq == 0:
		return ""
	}
	return fmt.Sprintf(frame.Position+" ", e.Seq)
}

// Unplaced returns a record for a reader of another log: without the positions of its entries, and without stale
// entries.
func (r Record) Unplaced() Record {
	r = r.clone()
	for _, f := range Fields {
		r.set(f, slices.DeleteFunc(r.Entries(f), func(e Entry) bool { return e.Stale != nil }))
	}
	r.each(func(e *Entry) { e.Seq = 0 })
	return r
}

// Size returns the tokens of a record in a prompt. The estimate is not below any model's count. Marks of stale entries
// do not count.
func Size(r Record) int { return tokens.Estimate(Render(r.unmarked())) }

// FieldSizes returns the tokens of each field that has entries.
func FieldSizes(r Record) map[Field]int {
	sizes, unmarked := map[Field]int{}, r.unmarked()
	for _, f := range Fields {
		if text := renderField(f, unmarked.Entries(f)); text != "" {
			sizes[f] = tokens.Estimate(text)
		}
	}
	return sizes
}

// Largest returns the fields with the most tokens, at most three, such as "decisions (420 tokens)".
func Largest(r Record) []string {
	sizes := FieldSizes(r)
	fields := slices.DeleteFunc(slices.Clone(Fields), func(f Field) bool { return sizes[f] == 0 })
	slices.SortStableFunc(fields, func(a, b Field) int { return sizes[b] - sizes[a] })
	var names []string
	for _, f := range fields[:min(len(fields), 3)] {
		names = append(names, fmt.Sprintf("%s (%d tokens)", f, sizes[f]))
	}
	return names
}

// checkSize returns ErrInvalid if a record is too large for a window, unless the change made it smaller.
func checkSize(before, after Record, window int) error {
	size := Size(after)
	_, most := LimitsIn(window)
	if size <= most || size < Size(before) {
		return nil
	}
	return db.Invalid("The working memory would have %d tokens; it may have at most %d. Nothing was changed. Its largest "+
		"fields would be %s: shorten or remove entries there, and keep details elsewhere.", size, most,
		strings.Join(Largest(after), ", "))
}

// Memory is the working memory of a conversation in its current version.
type Memory struct {
	AgentID      string        `json:"agent_id"`
	Conversation string        `json:"conversation_id"`
	Version      int           `json:"version" doc:"0 before the first change, one higher after each."`
	Tokens       int           `json:"tokens" doc:"Of the record in a prompt: 200 to 800 are healthy, 1,500 the most."`
	FieldTokens  map[Field]int `json:"field_tokens" doc:"Of the fields that have entries."`
	Record
	Text      string    `json:"text" doc:"The record as a prompt shows it; empty if it has no entries."`
	UpdatedAt time.Time `json:"updated_at"`
}

// MismatchError says that a working memory is not at the version that a change expects. errors.Is finds ErrConflict in
// it. Current is the current memory.
type MismatchError struct{ Current Memory }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("the working memory of conversation %s is at version %d and not at the version that this change "+
		"expects; the change was not made", e.Current.Conversation, e.Current.Version)
}

// Unwrap returns ErrConflict.
func (e *MismatchError) Unwrap() error { return db.ErrConflict }
