package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// oneOf returns a query parameter that must be one of words; empty if it is absent or empty. An *apiError for any other
// word.
func (v *visit) oneOf(name string, words ...string) (string, error) {
	word := v.r.URL.Query().Get(name)
	if word == "" || slices.Contains(words, word) {
		return word, nil
	}
	return "", &apiError{Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("The address has the %s %q, but "+
		"it must be one of %s. Correct it, or leave it out.", name, clip(100, word), strings.Join(words, ", "))}
}

// whole returns a query parameter that must be a number from 1 on; 0 if it is absent or empty. An *apiError for
// anything else.
func (v *visit) whole(name string) (int64, error) {
	text := v.r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, &apiError{Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("The address has the %s %q, but "+
			"it must be a whole number from 1 to %d. Correct it, or leave it out.", name, clip(100, text), int64(1<<63-1))}
	}
	return n, nil
}
