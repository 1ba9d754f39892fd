// Package questions holds questions as people ask them, each with the text that answers it. Most share few words with
// their answers. The texts are made up, but for the functions of Go's standard library, which the set code names, and
// the sections of the set manuals, which are those of docs in November 2026.
package questions

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed *.jsonl
var files embed.FS

// Names are the sets whose texts stand alone: answers of a FAQ, notes, support cases, sections of manuals, and some of
// each in other languages.
var Names = []string{"faq", "support", "notes", "manuals", "german", "french", "spanish"}

// Set is texts that are searched together, and what is asked of them.
type Set struct {
	Name      string
	Texts     []string
	Questions []Question
}

// Question is what is asked, and the index of the text that answers it.
type Question struct {
	Text   string
	Answer int
}

// Turn is what somebody says in a dialogue.
type Turn struct {
	Dialogue string `json:"dialogue"` // who takes part in it
	Day      string `json:"day"`      // 2006-01-02
	Speaker  string `json:"speaker"`
	Text     string `json:"text"`
	Question string `json:"question"` // that it answers; may be empty
}

// Function is what is asked for, and the name of the function of the standard library that does it, as in
// "bufio.Reader.Peek".
type Function struct {
	Name     string `json:"function"`
	Question string `json:"question"`
}

// Read returns the set of a name. A line without a text is another question that the text before answers; a text
// without a question answers none.
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

// Dialogues returns the turns of all dialogues, in their order.
func Dialogues() []Turn { return lines[Turn]("dialogues") }

// OfDialogues returns a set for each dialogue.
func OfDialogues() (sets []Set) {
	of := ""
	for _, t := range Dialogues() {
		if t.Dialogue != of {
			of = t.Dialogue
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

// Functions returns what is asked for functions.
func Functions() []Function { return lines[Function]("code") }

// lines reads a file of JSON lines, which is part of the program.
func lines[T any](name string) (all []T) {
	data, err := files.ReadFile(name + ".jsonl")
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(data) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Errorf("%s.jsonl: %w", name, err))
		}
		all = append(all, one)
	}
	return all
}
