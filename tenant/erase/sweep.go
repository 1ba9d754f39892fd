package erase

import (
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
