package agentfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// checkText returns ErrInvalid for a value with texts that Postgres cannot store: with a NUL, or not in UTF-8.
func checkText(place string, raw json.RawMessage) error {
	if !utf8.Valid(raw) {
		return db.Invalid("%s: a text is not UTF-8", place)
	}
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return nil
	}
	var value any
	if err := decode(place, raw, &value); err != nil {
		return err
	}
	if hasNUL(value) {
		return db.Invalid("%s: a text has a NUL (\\u0000), which cannot be stored", place)
	}
	return nil
}

func hasNUL(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for name, item := range v {
			if strings.Contains(name, "\x00") || hasNUL(item) {
				return true
			}
		}
	}
	return false
}

// encode returns a value in compact JSON that does not escape markup: raw parts of it stay as they are.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
