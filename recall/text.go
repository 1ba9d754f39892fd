package recall

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/embed"
)

// maxSearchBytes is how much of a message is searched.
const maxSearchBytes = 256 << 10

// echoes tells the tools whose results repeat the log: what they returned is found where it stood first.
func echoes(tool string) bool { return tool == "conversation_search" || tool == "expand" }

// searchable is what a message is found by: who speaks and what is said, thought, called and returned. Nothing finds instructions: they
// have words of everything.
func searchable(role Role, name *string, parts []Part) string {
	if role == System {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
		if p.Type == ToolCall && !echoes(p.Name) {
			texts = append(texts, p.Name+" "+argumentText(p.Input))
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	said := strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
	if said == "" {
		return ""
	}
	if name != nil && *name != "" {
		said = *name + ": " + said
	}
	return beginning(said, maxSearchBytes)
}

// Text is a message as one text: what is said and thought, the calls of tools, and what they returned.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Content {
		switch p.Type {
		case ToolCall:
			texts = append(texts, p.Name+"("+p.Input+")")
		case Image:
			texts = append(texts, "[image]")
		default:
			texts = append(texts, p.Text)
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// argumentText is what the arguments of a call say, without their JSON.
func argumentText(input string) string {
	var value any
	if json.Unmarshal([]byte(input), &value) != nil {
		return input
	}
	var words []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(v[key])
			}
		}
	}
	walk(value)
	return strings.Join(words, "\n")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// beginning is at most so many bytes of a text, whole characters.
func beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// weigh returns the weights of a message's words, and its terms as the index has them; nils where it is not searched.
func weigh(agent int64, m *prepared) (*pgvector.SparseVector, []int64) {
	if m.search == "" || m.echo {
		return nil, nil
	}
	lex := embed.Document(m.search)
	return &lex.Vector, embed.Owned(agent, lex.Terms)
}
