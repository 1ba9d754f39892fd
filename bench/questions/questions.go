// Package questions holds questions as people ask them, each with the text that answers it. Most questions share few
// words with their answers. The texts are made up, with two exceptions: the set code names functions of Go's standard
// library, and the set manuals has sections from docs in November 2026.
package questions

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed *.jsonl
var files embed.FS

// Names are the sets with texts that stand alone: answers of a FAQ, support cases, notes, sections of manuals, and some
// of each in other languages.
var Names = []string{"faq", "support", "notes", "manuals", "german", "french", "spanish"}

// Set is a set of texts that are searched together, with questions about them.
type Set struct {
	Name      string
	Texts     []string
	Questions []Question
}

// Question is a question, and the index of the text that answers it.
type Question struct {
	Text   string
	Answer int
}

// Turn is what somebody says in a dialogue.
type Turn struct {
	Dialogue string `json:"dialogue"` // name of the dialogue
	Day      string `json:"day"`      // 2006-01-02
	Speaker  string `json:"speaker"`
	Text     string `json:"text"`
	Question string `json:"question"` // the question that it answers; may be empty
}

// Function is a question, and the name of the standard library function that does what is asked, such as
// "bufio.Reader.Peek".
type Function struct {
	Name     string `json:"function"`
	Question string `json:"question"`
}

// Read returns the set with a name. In the file, a line without a text is another question that the previous text
// answers, and a text without a question answers none.
func Read(name string) Set {
	set := Set{Name: name}
	for _, line := range lines[struct{ Question, Text string }](name) {
		if line.Text != "" {
			set.Texts = append(set.Texts, line.Text)
		}
		if line.Question != "" {
			set.Questions = append(set.Questions, Question{line.Question, len(set.Texts) - 1})
		}
	}
	return set
}

// Dialogues returns the turns of all dialogues, in order.
func Dialogues() []Turn { return lines[Turn]("dialogues") }

// OfDialogues returns a set for each dialogue.
func OfDialogues() (sets []Set) {
	current := ""
	for _, t := range Dialogues() {
		if t.Dialogue != current {
			current = t.Dialogue
			sets = append(sets, Set{Name: "dialogues"})
		}
		set := &sets[len(sets)-1]
		if t.Question != "" {
			set.Questions = append(set.Questions, Question{t.Question, len(set.Texts)})
		}
		set.Texts = append(set.Texts, t.Text)
	}
	return sets
}

// Remark is what somebody says in the long dialogue of two people, or a question about it.
type Remark struct {
	ID      string `json:"id"` // empty for a question
	Day     string `json:"day"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`

	Kind     string   `json:"kind"` // hops, open, order, instruction or preference
	Question string   `json:"question"`
	Evidence []string `json:"evidence"` // ids of what answers the question
}

// Evidence returns the remarks of the long dialogue, in order, and the questions after them. A question of several hops
// needs several remarks. An open one is answered by what they say of a person. The other kinds ask for the order of
// events, for a standing instruction that a task must follow, and for a preference that a choice must suit.
func Evidence() []Remark { return lines[Remark]("evidence") }

// Functions returns the questions about functions.
func Functions() []Function { return lines[Function]("code") }

// lines reads an embedded file of JSON lines.
func lines[T any](name string) (all []T) {
	data, err := files.ReadFile(name + ".jsonl")
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(data) {
		var item T
		if err := json.Unmarshal(line, &item); err != nil {
			panic(fmt.Errorf("%s.jsonl: %w", name, err))
		}
		all = append(all, item)
	}
	return all
}
