package mcp

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// The kinds of resources, in the order of their lists. A kind is the first part of a URI's path.
const (
	blocks        = "blocks"
	memory        = "memory"
	conversations = "conversations"
	folders       = "files"
)

const (
	scheme  = "loci://"
	summary = "summary" // follows the id of a conversation
)

// place is what a URI names: a kind, and a path below it.
type place struct {
	kind string
	path []string
}

// uriOf returns the URI of an agent's resource: loci://{agent_id}/{kind}/….
func uriOf(agentID string, p place) string {
	parts := []string{agentID, p.kind}
	for _, part := range p.path {
		parts = append(parts, url.PathEscape(part))
	}
	return scheme + strings.Join(parts, "/")
}

// storable reports whether Postgres can store a text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// placeOf returns the place that a URI names, if it is a URI of the agent; else false.
func placeOf(agentID, uri string) (p place, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme+agentID+"/")
	if !ok {
		return p, false
	}
	if path, isMemory := strings.CutPrefix(rest, memory+"/"); isMemory {
		rest = memory + "/" + strings.TrimPrefix(path, "/") // the tools write paths with one leading slash
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
