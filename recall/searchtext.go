package recall

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// pieceBytes is the most of a text whose words are weighed together. The row of a message has the words of the first
// pieceBytes; a longer text is found by its pieces, the first among them.
const pieceBytes = 16 << 10

// repeatsLog reports whether a tool returns messages of the log, which a search finds where they were said.
func repeatsLog(tool string) bool {
	return slices.Contains([]string{"conversation_search", "expand", "search_memory"}, tool)
}

// Searched returns the text that a search finds a message by; empty if no search finds it.
func Searched(m Message) string { return searchText(m.Role, m.Name, m.Content) }

// searchText returns the text that a search finds a message by: its speaker, and what it says, thinks, calls and
// returns. It is empty for system prompts, which have words of every subject.
func searchText(role Role, name *string, parts []Part) string {
	if role == System {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
		if p.Type == ToolCall && !repeatsLog(p.Name) {
			texts = append(texts, p.Name+" "+strings.Join(ArgumentTexts(p.Input), "\n"))
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
	return said
}

// ArgumentTexts returns the strings in a call's arguments, in the order of their names; the arguments whole if they are
// not JSON.
func ArgumentTexts(input string) []string {
	var value any
	if json.Unmarshal([]byte(input), &value) != nil {
		return []string{input}
	}
	return stringsIn(value, nil)
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

// pieces returns a text in parts of at most pieceBytes, which end with a line where there is one.
func pieces(text string) (all []string) {
	for len(text) > pieceBytes {
		piece := db.Beginning(text, pieceBytes)
		if i := strings.LastIndexByte(piece, '\n'); i > pieceBytes/2 {
			piece = piece[:i+1]
		}
		all, text = append(all, piece), text[len(piece):]
	}
	return append(all, text)
}

// termsPerLength is about how many searchable terms a text has for each of its termLength.
const termsPerLength = 0.5

// termLength returns the length of a text for ranking: one for four characters of ASCII, and one for each other
// character. It does not follow the estimate of tokens, so that a better estimate keeps the ranking.
func termLength(text string) int {
	ascii, others := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}
