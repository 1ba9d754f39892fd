package mcp

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// The kinds of resources, which are the first parts of their URIs' paths, in the order of their lists.
const (
	blocks        = "blocks"
	memory        = "memory"
	conversations = "conversations"
	folders       = "files"
)

const (
	scheme  = "loci://"
	summary = "summary" // behind the id of a conversation
)

// place is what a URI names: a kind, and what is below it.
type place struct {
	kind string
	path []string
}

// uriOf returns the URI of a place of an agent: loci://{agent_id}/{kind}/….
func uriOf(agentID string, p place) string {
	parts := []string{agentID, p.kind}
	for _, part := range p.path {
		parts = append(parts, url.PathEscape(part))
	}
	return scheme + strings.Join(parts, "/")
}

// storable reports whether a text can be in the database.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// placeOf returns the place of a URI of an agent, and false for any other.
func placeOf(agentID, uri string) (p place, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme+agentID+"/")
	if !ok {
		return p, false
	}
	if path, isMemory := strings.CutPrefix(rest, memory+"/"); isMemory {
		rest = memory + "/" + strings.TrimPrefix(path, "/") // as the tools write the path
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" || !storable(text) {
			return p, false
		}
		parts[i] = text
	}
	return place{parts[0], parts[1:]}, true
}
