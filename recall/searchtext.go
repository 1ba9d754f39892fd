package recall

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// The words of a message's first pieceBytes are weighed together, and so is their meaning. A text of more than
// longBytes is also found by each of its passages, of at most passageBytes: in a long text, a fact has little weight.
const (
	pieceBytes   = 16 << 10
	longBytes    = 4 << 10
	passageBytes = 700
)

// passageShare is the factor for the weights of a passage's words. Passages are short, and the rest of their message is
// about other things. With 1, functions with more than longBytes displace answers of TestRetrievalOfCode.
const passageShare = 0.7

// repeatsLog reports whether a tool returns messages of the log. A search finds those where they were first said.
func repeatsLog(tool string) bool {
	return slices.Contains([]string{"conversation_search", "expand", "search_memory"}, tool)
}

// Searched returns the text by which a search finds a message; empty if no search finds it.
func Searched(m Message) string { return searchText(m.Role, m.Name, m.Content) }

// searchText returns the text by which a search finds a message: its speaker, and what it says, thinks, calls and
// returns. It is empty for system prompts, because they have words of every subject.
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
	text := joinTexts(texts)
	if text == "" {
		return ""
	}
	if name != nil && *name != "" {
		text = *name + ": " + text
	}
	return text
}

// ArgumentTexts returns the strings in a call's arguments, ordered by the arguments' names; the whole input if it is
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

// passagesOf splits a text into parts of at most passageBytes. A part ends with a line, else with a sentence, else with
// a word, if one ends in its second half.
func passagesOf(text string) (all []string) {
	for len(text) > passageBytes {
		part := db.Beginning(text, passageBytes)
		for _, end := range []string{"\n", ". ", " "} {
			if i := strings.LastIndex(part, end); i >= passageBytes/2 {
				part = part[:i+len(end)]
				break
			}
		}
		all, text = append(all, part), text[len(part):]
	}
	return append(all, text)
}

// termsPerLength is about how many searchable terms a text has per unit of termLength.
const termsPerLength = 0.5

// termLength returns a text's length for ranking: four ASCII characters count as one, and so does each other character.
// It does not depend on the estimate of tokens, so that a better estimate leaves the ranking as it is.
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
