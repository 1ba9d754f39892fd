package tool

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
)

func (n *number) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	f, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if !ok || err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return &mismatch{"a whole number such as 20", raw}
	}
	*n = number(f)
	return nil
}

func (s *start) UnmarshalJSON(raw []byte) error {
	err := (*number)(s).UnmarshalJSON(raw)
	if err == nil && *s < 0 {
		err = &mismatch{"at least 0", raw}
	}
	return err
}

func (f *flag) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(word)))
	if !ok || err != nil {
		return &mismatch{"true or false", raw}
	}
	*f = flag(b)
	return nil
}

func (t *text) UnmarshalJSON(raw []byte) error {
	word, ok := scalar(raw)
	if !ok {
		return &mismatch{"a string", raw}
	}
	*t = text(db.Clean(word))
	return nil
}

func (c *condition) UnmarshalJSON(raw []byte) error {
	if raw = unwrapped(raw); len(raw) > 0 && raw[0] != '{' {
		return &mismatch{`a JSON object such as {"metadata.food": "sushi"}`, raw}
	}
	*c = slices.Clone(raw)
	return nil
}

// json returns the filter; nil if the call has none.
func (c condition) json() json.RawMessage { return json.RawMessage(c) }

func (s *selection) UnmarshalJSON(raw []byte) error { return (*text)(s).UnmarshalJSON(raw) }

// cut matches a JSON string that begins like a JSON list or object of items.
var cut = regexp.MustCompile(`^"\s*(?:\[\s*\{?\s*\\"|\{\s*\\")`)

func (l *list[T]) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	var items []json.RawMessage // a new slice, because raw's own bytes would be overwritten
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
	} else if cut.Match(raw) {
		return &mismatch{"whole JSON: it is broken, or ends early", raw}
	} else {
		items = append(items, raw)
	}
	for _, raw := range items {
		if absent(raw) {
			continue
		}
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			if m := (*mismatch)(nil); errors.As(err, &m) {
				return &mismatch{"a list; each item must be " + m.want, m.got}
			}
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// tagFilter is a list of tags. An empty one still filters: no passage has the empty tag.
type tagFilter list[text]

// UnmarshalJSON implements json.Unmarshaler.
func (f *tagFilter) UnmarshalJSON(raw []byte) error {
	if err := (*list[text])(f).UnmarshalJSON(raw); err != nil {
		return err
	}
	var items []any
	if json.Unmarshal(unwrapped(raw), &items) == nil && slices.Contains(items, any("")) {
		*f = append(*f, "")
	}
	return nil
}

// plain returns texts as strings.
func plain(texts []text) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = string(t)
	}
	return all
}

// scalar returns a JSON string, number or boolean as text. It returns false for an object or a list.
func scalar(raw []byte) (string, bool) {
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), raw[0] != '{' && raw[0] != '['
}

// maxOffset is the largest number of results that a search can skip.
const maxOffset = 10_000

// skipped returns the offset of a call, 0 if the call gives none. ErrInvalid if it is below 0 or above maxOffset.
func skipped(asked *number) (int, error) {
	offset := int(deref(asked, 0))
	if offset < 0 || offset > maxOffset {
		return 0, db.Invalid("offset must be between 0 and %d, got %d", maxOffset, offset)
	}
	return offset, nil
}

// limited returns the limit of a call, usual if the call gives none. ErrInvalid if it is below 1 or above most.
func limited(asked *number, usual, most int) (int, error) {
	limit, err := lowered(asked, usual, most)
	if err == nil && asked != nil && int(*asked) > most {
		err = db.Invalid("limit must be between 1 and %d, got %d", most, int(*asked))
	}
	return limit, err
}

// lowered is like limited, for the tools that Letta also has: like Letta, it lowers a limit above most to most.
func lowered(asked *number, usual, most int) (int, error) {
	limit := int(deref(asked, number(usual)))
	if limit < 1 {
		return 0, db.Invalid("limit must be between 1 and %d, got %d", most, limit)
	}
	return min(limit, most), nil
}

func deref[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
