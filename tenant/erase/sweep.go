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
	m      *matcher // nil for the erasure of a message that says too little to count as a copy elsewhere
	dry    bool
	report Report

	// For the erasure of a whole message: the keys of the message and its copies in forks; a matcher for its sentences in
	// texts made from messages; and whether the message is empty already.
	whole  []int64
	quotes *matcher
	erased bool

	found int // occurrences in the current pass

	links *rowLinks // names rows in reports; nil until the first row is named

	waiting int // files in the current pass that are not parsed yet
}

func (w *sweep) count(table string, n int) {
	if n > 0 {
		w.found += n
		w.report.Found[table] += n
	}
}

// leave counts occurrences that cannot be erased.
func (w *sweep) leave(where string, n int) {
	if n > 0 {
		w.report.Left[where] += n
	}
}

// eraseAny erases in a text that may be JSON. It returns the new text and the number of occurrences.
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
