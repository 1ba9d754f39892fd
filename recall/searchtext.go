package recall

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/embed"
)

// maxSearchBytes bounds the text that a message is found by.
const maxSearchBytes = 256 << 10

// repeatsLog reports whether a tool returns messages of the log, which a search finds where they were said.
func repeatsLog(tool string) bool { return tool == "conversation_search" || tool == "expand" }

// Searched returns the text that a search finds a message by; empty if no search finds it.
func Searched(m Message) string { return searchable(m.Role, m.Name, m.Content) }

// searchable returns the text that a search finds a message by: its speaker, and what it says, thinks, calls and
// returns. It is empty for system prompts, which have words of every subject.
func searchable(role Role, name *string, parts []Part) string {
	if role == System {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
		if p.Type == ToolCall && !repeatsLog(p.Name) {
			texts = append(texts, p.Name+" "+argumentText(p.Input))
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	said := joinTexts(texts)
	if said == "" {
		return ""
	}
	if name != nil && *name != "" {
		said = *name + ": " + said
	}
	return beginning(said, maxSearchBytes)
}

// joinTexts joins the texts that are not empty by newlines.
func joinTexts(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// argumentText returns the strings in a call's arguments, by the order of their keys; the arguments if they are not
// JSON.
func argumentText(input string) string {
	var value any
	if json.Unmarshal([]byte(input), &value) != nil {
		return input
	}
	return strings.Join(stringsIn(value, nil), "\n")
}

func stringsIn(value any, found []string) []string {
	switch v := value.(type) {
	case string:
		return append(found, v)
	case []any:
		for _, item := range v {
			found = stringsIn(item, found)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = stringsIn(v[key], found)
		}
	}
	return found
}

// beginning returns the whole characters in the first size bytes of a text.
func beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// weigh returns the weights of an entry's words and its terms as the index has them, or nils if it is not searched.
func weigh(agent int64, e *entry) (*pgvector.SparseVector, []int64) {
	if e.searchText == "" || e.repeatsLog {
		return nil, nil
	}
	lex := embed.Document(e.searchText)
	return &lex.Vector, embed.Owned(agent, lex.Terms)
}
