package erase

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/files"
)

// ownWords lists columns that hold only Loci's own words and never a caller's text, because the schema or the code that
// writes them allows nothing else. Columns that are not listed are searched, including columns of later versions.
var ownWords = map[string][]string{
	"agents":               {"agent_type", "timezone"},
	"api_keys":             {"prefix", "scopes"},
	"children":             {"mode", "status"},
	"compactions":          {"how", "mode"},
	"events":               {"type"},
	"files":                {"charset", "language"},
	"flushes":              {"kind", "status"},
	"handover_updates":     {"status"},
	"handovers":            {"how", "status"},
	"identities":           {"identity_type"},
	"memory_file_versions": {"change", "sha256"},
	"memory_files":         {"sha256"},
	"message_pieces":       {"role"},
	"message_vectors":      {"role"},
	"messages":             {"purpose", "role"},
	"passages":             {"language"},
	"prompts":              {"format"},
	"reembedding":          {"state"},
	"replays":              {"status"},
	"river_job":            {"kind", "queue"},
	"runs":                 {"error_type", "owner", "status", "stop_reason"},
	"steps":                {"endpoint_type", "error_type", "provider", "status", "stop_reason"},
	"stored_usage":         {"kind"},
}

// mixedWords lists columns that hold both Loci's own words and callers' texts. Each function reports whether a value is
// such a word.
var mixedWords = map[string]func(string) bool{
	"compactions.trigger": func(word string) bool { return slices.Contains(store.Triggers, word) },
	"files.media_type":    files.IsMediaType,
	"tools.source_type":   func(word string) bool { return slices.Contains(sourceTypes, word) },
}

// sourceTypes are Letta's types of tool sources.
var sourceTypes = []string{"python", "typescript", "json"}

// isOwn reports whether a column holds ids or Loci's own words, which an erasure leaves unchanged.
func (c column) isOwn() bool {
	return c.Name == "id" || strings.HasSuffix(c.Name, "_id") || strings.HasSuffix(c.Name, "_ids") ||
		slices.Contains(ownWords[c.Table], c.Name)
}

// hasWord reports whether the value of the column is one of Loci's own words.
func (c column) hasWord(value string) bool {
	isWord := mixedWords[c.Table+"."+c.Name]
	return isWord != nil && isWord(value)
}
