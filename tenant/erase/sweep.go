package erase

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/db"
)

// sweep is the work on one erasure.
type sweep struct {
	*Store
	org    db.Org
	e      Erasure
	m      *matcher // nil for a message that says nothing of a copy's length
	dry    bool
	report Report

	// Of a message that is erased whole: the keys of it and of its copies in forks, what finds its sentences in what was
	// made of it, and whether it says nothing any more.
	whole  []int64
	quotes *matcher
	erased bool

	found int // of the present pass

	links *rowLinks // by which rows are named; nil until the first one is

	waiting int // files of the present pass that are not parsed yet
}

func (s *Store) sweep(org db.Org, e Erasure) (*sweep, error) {
	w := &sweep{Store: s, org: org, e: e, report: newReport()}
	if e.Key != 0 { // it goes on with an erasure that waited, or whose server stopped
		w.report = e.Report
		w.report.Passes, w.report.Remains = 0, []string{}
	}
	if e.MessageID != nil {
		return w, nil
	}
	var err error
	w.m, err = newMatcher(e.Texts, e.WholeWords)
	return w, err
}

// pass searches everything once, erases what it finds, and returns how many occurrences there were.
func (w *sweep) pass(ctx context.Context) (int, error) {
	w.found, w.waiting, w.report.Unread, w.report.UnreadIDs = 0, 0, 0, []string{}
	w.report.Left = map[string]int{}
	for _, step := range []func(context.Context) error{w.messages, w.files, w.passages, w.promptParts, w.tables} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	return w.found, nil
}

func (w *sweep) count(table string, n int) {
	if n > 0 {
		w.found += n
		w.report.Found[table] += n
	}
}

// leave counts what an erasure cannot change.
func (w *sweep) leave(where string, n int) {
	if n > 0 {
		w.report.Left[where] += n
	}
}

// eraseAny returns a text or a JSON value without what it finds, and how often it was there.
func (m *matcher) eraseAny(text string) (string, int) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if json.Valid([]byte(trimmed)) {
			if after := m.eraseJSON(text, callersNames); !m.in(after.text) {
				return after.text, after.n
			}
		}
	}
	return m.erase(text)
}

// keysPage is how many rows of a large table are read at a time.
const keysPage = 200
