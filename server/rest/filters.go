package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// unmatched are filters of Letta's lists by fields that Loci does not store. A list or a count with one of these
// filters is empty, unless the operation has a parameter of that name.
var unmatched = []string{"identity_id", "identifier_keys", "project_id", "template_id", "base_template_id",
	"deployment_id", "entity_id", "created_by_id", "trace_ids"}

// unmatchedBySearches are those of Letta's searches. A search knows no other.
var unmatchedBySearches = []string{"project_id", "template_id"}

// unmatchedBy returns the unmatched filters that an operation knows.
func unmatchedBy(method, path string) []string {
	switch {
	case method == http.MethodPost && searches(path):
		return unmatchedBySearches
	case method == http.MethodGet && !searches(path):
		return unmatched
	}
	return nil
}

type unmatchedKey struct{}

// filters reports whether an operation may have filters: it is a GET or a search.
func filters(method, path string) bool {
	return method == http.MethodGet || method == http.MethodPost && searches(path)
}

// searches reports whether an operation searches. Such an operation refuses each name that it does not know: without
// a filter that is misspelled, it would find everything.
func searches(path string) bool {
	return strings.HasSuffix(path, "/search") || strings.HasSuffix(path, "/memory-search") ||
		strings.HasSuffix(path, "/facets")
}

// otherNames maps a name for what narrows a search → Loci's.
var otherNames = map[string]string{"metadata": "filter", "where": "filter", "identity_id": "user_id",
	"identifier_key": "user_id"}

// unknownName returns a *Problem for a field or a parameter that a search does not know. It names the nearest known
// name, or all of them if none is near.
func unknownName(kind, at, name string, known []string) *Problem {
	if other := otherNames[name]; slices.Contains(known, other) {
		return Unprocessable(at, "Loci does not know this "+kind+"; did you mean "+other+"?")
	}
	if meant := db.Nearest(name, known); len(name) <= maxNameBytes && meant != "" {
		return Unprocessable(at, "Loci does not know this "+kind+"; did you mean "+meant+"?")
	}
	there := "Loci does not know this " + kind + "; there are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	return Unprocessable(shorten(at), there)
}
