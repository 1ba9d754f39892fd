package rest

import (
	"net/http"
	"strings"
)

// unmatched are filters of Letta's by fields that Loci does not store. A list, a count or a search with one of these
// filters is empty, unless the operation has a parameter of that name.
var unmatched = []string{"identity_id", "identifier_keys", "project_id", "template_id", "base_template_id",
	"deployment_id", "entity_id", "created_by_id", "trace_ids"}

type unmatchedKey struct{}

// filters reports whether an operation may have filters: it is a GET or a search.
func filters(method, path string) bool {
	return method == http.MethodGet || method == http.MethodPost && strings.HasSuffix(path, "/search")
}
