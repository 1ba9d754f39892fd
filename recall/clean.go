package recall

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// clean redacts and cleans the part's texts, in copies of its slices, and resets the fields that only Loci sets.
func (p *Part) clean(r *redact.Redactor) {
	p.Clip, p.Orphan = nil, false
	original := p.Text
	cleaned := func(text string) string { return r.Redact(db.Clean(text)) }
	p.ReplaceText(cleaned(p.Text), cleaned)
	p.Input = CleanEscapes(cleaned(p.Input))
	if p.Type == Reasoning && p.Text != original {
		p.Signature = "" // it signs the old text, so its provider would refuse it
	}
	if (p.Type == Text || p.Type == Reasoning) && p.Text != original {
		p.Extra = "" // it belongs to the old text, too
	}
	p.CallID, p.Name = cleanedID(p.CallID, r), cleanedID(p.Name, r)
	for _, text := range []*string{&p.Signature, &p.Data} {
		*text = db.Clean(*text)
	}
	for _, lines := range []*[]string{&p.Stdout, &p.Stderr} {
		*lines = slices.Clone(*lines)
		for i, line := range *lines {
			(*lines)[i] = r.Redact(db.Clean(line))
		}
	}
}

// cleanedID redacts and cleans a name or an id. It changes a placeholder's brackets and colons, which providers refuse
// in names, to underscores.
func cleanedID(id string, r *redact.Redactor) string {
	id = db.Clean(id)
	redacted := r.Redact(id)
	if redacted == id {
		return id
	}
	return strings.Trim(strings.Map(func(c rune) rune {
		if c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, redacted), "_")
}

// cleanJSON redacts and cleans the texts in a part's JSON.
func (p *Part) cleanJSON(r *redact.Redactor) (err error) {
	p.Images = slices.Clone(p.Images)
	values := []*json.RawMessage{&p.Source, &p.Summary}
	for i := range p.Images {
		values = append(values, &p.Images[i])
	}
	for _, raw := range values {
		if *raw, err = cleanedJSON(*raw, r); err != nil {
			return err
		}
	}
	if p.Item, err = cleanedItem(p.Item, r); err != nil {
		return err
	}
	p.Extra, err = cleanedItem(p.Extra, r)
	return err
}

// cleanedItem redacts and cleans the texts in a provider's item. An item without secrets keeps its bytes.
func cleanedItem(item string, r *redact.Redactor) (string, error) {
	if item == "" {
		return "", nil
	}
	item = CleanEscapes(item)
	var value, whole any
	if json.Unmarshal([]byte(item), &value) != nil || json.Unmarshal([]byte(item), &whole) != nil {
		return "", db.Invalid("an item of a provider is not JSON")
	}
	cleaned := cleanedValue(value, r)
	if reflect.DeepEqual(cleaned, whole) && db.Clean(item) == item {
		return item, nil
	}
	raw, err := json.Marshal(cleaned)
	return string(raw), err
}

// escapes matches the escapes in a JSON text. It matches a surrogate pair as one escape.
var escapes = regexp.MustCompile(
	`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// CleanEscapes replaces escapes in a JSON text that providers refuse: half a surrogate pair becomes U+FFFD, and NUL
// becomes ␀ (U+2400). Other texts are returned unchanged.
func CleanEscapes(text string) string {
	if !strings.Contains(text, `\u`) || !json.Valid([]byte(text)) {
		return text
	}
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		if len(escape) != len(`\u0000`) {
			return escape
		}
		switch unit, _ := strconv.ParseUint(escape[2:], 16, 16); {
		case unit == 0:
			return "␀"
		case utf16.IsSurrogate(rune(unit)):
			return "\uFFFD"
		}
		return escape
	})
}

func cleanedJSON(raw json.RawMessage, r *redact.Redactor) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, db.Invalid("a part's source or summary is not JSON")
	}
	return json.Marshal(cleanedValue(value, r))
}

// unread are the fields that hold base64 images, or data that a provider encrypted or signed. A redactor would find
// secrets in them by chance.
var unread = []string{"data", "result", "encrypted_content", "signature"}

func cleanedValue(value any, r *redact.Redactor) any {
	switch v := value.(type) {
	case string:
		return r.Redact(db.Clean(v))
	case []any:
		for i := range v {
			v[i] = cleanedValue(v[i], r)
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			if data, is := item.(string); is && slices.Contains(unread, name) {
				object[name] = db.Clean(data)
			} else {
				object[db.Clean(name)] = cleanedValue(item, r)
			}
		}
		return object
	}
	return value
}
