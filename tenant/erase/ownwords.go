package erase

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/files"
)

// ownWords are the columns that hold words of Loci's own and no text of a caller: the schema or the code that stores
// them allows no other. A later column of the same name is searched until it is listed.
var ownWords = map[string][]string{
	"agents":               {"agent_type", "timezone"},
	"api_keys":             {"prefix", "scopes"},
	"children":             {"mode", "status"},
	"compactions":          {"how", "mode"},
	"events":               {"type"},
	"files":                {"charset"},
	"flushes":              {"kind", "status"},
	"handover_updates":     {"status"},
	"handovers":            {"how", "status"},
	"identities":           {"identity_type"},
	"memory_file_versions": {"change", "sha256"},
	"memory_files":         {"sha256"},
	"message_pieces":       {"role"},
	"message_vectors":      {"role"},
	"messages":             {"purpose", "role"},
	"prompts":              {"format"},
	"reembedding":          {"state"},
	"replays":              {"status"},
	"river_job":            {"kind", "queue"},
	"runs":                 {"error_type", "owner", "status", "stop_reason"},
	"steps":                {"endpoint_type", "error_type", "provider", "status", "stop_reason"},
	"stored_usage":         {"kind"},
}

// mixedWords are the columns that hold words of Loci's own and texts of callers, and what reports such a word.
var mixedWords = map[string]func(string) bool{
	"compactions.trigger": func(word string) bool { return slices.Contains(store.Triggers, word) },
	"files.media_type":    files.IsMediaType,
	"tools.source_type":   func(word string) bool { return slices.Contains(sourceTypes, word) },
}

// sourceTypes are the types of sources that Letta has.
var sourceTypes = []string{"python", "typescript", "json"}

// isOwn reports whether a column names rows or says how they are, which an erasure leaves.
func (c column) isOwn() bool {
	return c.Name == "id" || strings.HasSuffix(c.Name, "_id") || strings.HasSuffix(c.Name, "_ids") ||
		slices.Contains(ownWords[c.Table], c.Name)
}

// hasWord reports whether the value of the column is a word of Loci's own.
func (c column) hasWord(value string) bool {
	isWord := mixedWords[c.Table+"."+c.Name]
	return isWord != nil && isWord(value)
}
