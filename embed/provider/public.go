package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// told is an error with a text for the operator and another one for organizations.
type told struct {
	error
	public string
}

// Unwrap returns the operator's error.
func (e *told) Unwrap() error { return e.error }

// Public returns the text for organizations.
func (e *told) Public() string { return e.public }

// Told returns an operator's error with a sentence for organizations: what happened, without hosts, names of settings
// and the provider's own words, except those that Plain leaves.
func Told(err error, format string, args ...any) error {
	return &told{err, fmt.Sprintf(format, args...)}
}

// Public returns what organizations may read of an endpoint's error: the sentence from Told, or only that the endpoint
// fails.
func Public(err error) string {
	if known, ok := errors.AsType[interface {
		error
		Public() string
	}](err); ok {
		return known.Public()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the endpoint does not answer in time"
	}
	return "the endpoint fails"
}

// maxPlainRunes limits how much of a provider's message an organization reads.
const maxPlainRunes = 120

// Plain returns the beginning of a provider's message as organizations may read it: words of letters, numbers, names of
// parameters and the given names, such as the model's. Any other word stands as …, because it may be a key or an
// address. It is empty if hardly a word is left, or if the message is a page.
func Plain(message string, names ...string) string {
	message = strings.TrimSpace(message)
	if strings.HasPrefix(message, "{") {
		message = inJSON(message)
	}
	if strings.ContainsRune(message, '<') {
		return ""
	}
	words := strings.Fields(message)
	plain := 0
	for i, word := range words {
		bare := strings.Trim(word, "`'\"“”‘’()[]{},.:;!?")
		for _, name := range names {
			if name != "" && bare == name {
				bare = "name"
			}
		}
		switch {
		case plainWord.MatchString(bare):
			plain++
		case !plainNumber.MatchString(bare):
			words[i] = "…"
		}
	}
	if plain < leastPlainWords {
		return ""
	}
	text := strings.Join(words, " ")
	if utf8.RuneCountInString(text) > maxPlainRunes {
		text = string([]rune(text)[:maxPlainRunes]) + "…"
	}
	return text
}

// leastPlainWords is how many words say anything.
const leastPlainWords = 2

var (
	plainWord   = regexp.MustCompile(`^(?:\pL{1,20}(?:['’-]\pL{1,20})*|[a-z]{1,20}(?:_[a-z]{1,20})+)$`)
	plainNumber = regexp.MustCompile(`^\d[\d.,]{0,11}%?$`)
)

// inJSON returns the message in an error's JSON; empty if there is none.
func inJSON(body string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &fields) != nil {
		return ""
	}
	for _, name := range []string{"error", "message", "detail"} {
		var text string
		if raw := fields[name]; json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		if raw := fields[name]; len(raw) > 0 && raw[0] == '{' {
			return inJSON(string(raw))
		}
	}
	return ""
}
