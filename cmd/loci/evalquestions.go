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

// expected is a question and what answers it: a file, a passage, or any hit whose text contains a text.
type expected struct {
	Question string `json:"question"`
	File     string `json:"file"` // its name, with or without its folder, its path or its ID
	Passage  string `json:"passage"`
	Text     string `json:"text"`

	line int // from 1
}

// readQuestions reads a JSON object a line. Blank lines count, and hold nothing. An error names the line.
func readQuestions(text []byte) (all []expected, err error) {
	line := 0
	for one := range bytes.Lines(text) {
		line++
		if one = bytes.TrimSpace(one); len(one) == 0 {
			continue
		}
		e, err := readQuestion(one)
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

// readQuestion reads one line.
func readQuestion(line []byte) (e expected, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("it is no JSON object of question, and file, passage or text: %w", err)
	}
	if d.More() {
		return e, errors.New("it has more than one JSON object: a line has one")
	}
	given := 0
	for _, answer := range []string{e.File, e.Passage, e.Text} {
		if strings.TrimSpace(answer) != "" {
			given++
		}
	}
	switch {
	case strings.TrimSpace(e.Question) == "":
		return e, errors.New("it has no question")
	case given == 0:
		return e, errors.New("it says nothing of the answer: give one of file, passage and text")
	case given > 1:
		return e, errors.New("it has more than one of file, passage and text: give one")
	}
	return e, nil
}

// way is how a search ranks.
type way struct {
	mode   string  // of the API
	weight float64 // of meaning; 0 is the server's
}

// foundText is a hit of a search.
type foundText struct {
	names []string // by which a file is named
	id    string   // of a passage
	text  string
}

// searcher returns the first ten hits of a question, the best first, and whether they were ranked by meaning.
type searcher func(ctx context.Context, question string, w way) (hits []foundText, meaning bool, err error)

const evalDepth = 10 // hits of a search

// values returns the parameters of a search over a route that has them in its URL.
func (w way) values(question string) url.Values {
	v := w.parameters()
	v.Set("query", question)
	v.Set("limit", fmt.Sprint(evalDepth))
	v.Set("search_mode", w.mode)
	return v
}

// parameters returns the parameters that all routes have in their URLs.
func (w way) parameters() url.Values {
	v := url.Values{"explain": {"true"}}
	if w.weight > 0 {
		v.Set("weight", fmt.Sprint(w.weight))
	}
	return v
}

// isAnswered reports whether a hit is what the question expects. Texts are compared without regard to white space and
// to the case of letters.
func (e expected) isAnswered(by foundText) bool {
	switch {
	case e.File != "":
		return slices.Contains(by.names, e.File)
	case e.Passage != "":
		return by.id == e.Passage
	}
	return strings.Contains(folded(by.text), folded(e.Text))
}

func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
