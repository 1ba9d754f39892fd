package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// expected is a question with its answer: a file, a passage, or any hit with a text that contains Text.
type expected struct {
	Question string `json:"question"`
	File     string `json:"file"` // the file's name, with or without its folder, its path, or its ID
	Passage  string `json:"passage"`
	Text     string `json:"text"`

	line int // line number, from 1
}

// readQuestions reads questions from lines of JSON. It skips blank lines, which still count as lines. An error names
// the line.
func readQuestions(text []byte) (all []expected, err error) {
	line := 0
	for lineText := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) { // some editors write a mark first
		line++
		if lineText = bytes.TrimSpace(lineText); len(lineText) == 0 {
			continue
		}
		e, err := readQuestion(lineText)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		e.line = line
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, errors.New(`it has no questions: a line is such as {"question": "Who has the keys?", "text": "Ada"}`)
	}
	return all, nil
}

// readQuestion reads a question from a line.
func readQuestion(line []byte) (e expected, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("it is no JSON object of question, and file, passage or text: %w", err)
	}
	if d.More() {
		return e, errors.New("it has more than one JSON object: a line has one")
	}
	answers := 0
	for _, answer := range []string{e.File, e.Passage, e.Text} {
		if strings.TrimSpace(answer) != "" {
			answers++
		}
	}
	switch {
	case strings.TrimSpace(e.Question) == "":
		return e, errors.New("it has no question")
	case answers == 0:
		return e, errors.New("it says nothing of the answer: give one of file, passage and text")
	case answers > 1:
		return e, errors.New("it has more than one of file, passage and text: give one")
	}
	return e, nil
}

// way says how a search ranks.
type way struct {
	mode   string  // search mode of the API
	weight float64 // weight of meaning; 0 means the server's
}

// foundText is a hit of a search.
type foundText struct {
	names []string // all names of a file
	id    string   // id of a passage
	text  string
}

// searcher returns the first ten hits for a question, the best first. meaning reports whether the hits were ranked by
// meaning.
type searcher func(ctx context.Context, question string, w way) (hits []foundText, meaning bool, err error)

const evalDepth = 10 // number of hits in a search

// values returns the query parameters of a search, for a route that takes all of them in the URL.
func (w way) values(question string) url.Values {
	v := w.parameters()
	v.Set("query", question)
	v.Set("limit", fmt.Sprint(evalDepth))
	v.Set("search_mode", w.mode)
	return v
}

// parameters returns the query parameters that every route takes in the URL.
func (w way) parameters() url.Values {
	v := url.Values{"explain": {"true"}}
	if w.weight > 0 {
		v.Set("weight", fmt.Sprint(w.weight))
	}
	return v
}

// isAnswered reports whether a hit answers the question. Text is compared without regard to white space and case.
func (e expected) isAnswered(hit foundText) bool {
	switch {
	case e.File != "":
		return slices.Contains(hit.names, e.File)
	case e.Passage != "":
		return hit.id == e.Passage
	}
	return strings.Contains(folded(hit.text), folded(e.Text))
}

func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
