package erase

import (
	"fmt"
	"slices"
	"strings"
)

// ErasedRow is a row with an occurrence outside of messages, files, passages and stored prompts.
type ErasedRow struct {
	Where       string `json:"where" doc:"Table and column."`
	Of          string `json:"of" doc:"The row, such as which consumer of which agent; empty for a job."`
	Occurrences int    `json:"occurrences" doc:"How often it was there."`
	Left        bool   `json:"left" doc:"It could not be changed."`
}

// maxPlaces is how many places a report names.
const maxPlaces = 200

// place names a row with occurrences in a column.
func (w *sweep) place(t table, h hit, column, n int, left bool) {
	p := ErasedRow{Where: t.name + "." + t.columns[column].Name, Occurrences: n, Left: left}
	keys := make([]string, len(h.keys))
	for i, key := range h.keys {
		keys[i], _ = w.matcherOf(t.name).erase(key)
	}
	switch {
	case t.name == consumers && len(keys) == 2:
		p.Of = fmt.Sprintf("consumer %s of agent %s", keys[1], keys[0])
	case t.name != "river_job": // its number counts the jobs of all organizations
		p.Of = strings.Join(keys, " ")
	}
	if len(w.report.Places) < maxPlaces && !slices.Contains(w.report.Places, p) {
		w.report.Places = append(w.report.Places, p)
	}
}

// consumers is the table of the named readers of events, whose names are keys that an erasure may change.
const consumers = "event_consumers"
