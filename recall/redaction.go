package recall

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// redactor returns the organization's redactor, whose key it reads once.
func (s *Store) redactor(ctx context.Context, org db.Org) (*redact.Redactor, error) {
	return s.redactorFrom(ctx, s.db, org)
}

// Redactor returns what cleans and redacts a text as an append does its texts. It reads the organization's key from d.
func (s *Store) Redactor(ctx context.Context, d db.DB, org db.Org) (func(text string) string, error) {
	r, err := s.redactorFrom(ctx, d, org)
	return func(text string) string { return r.Redact(db.Clean(text)) }, err
}

// RedactText returns a text cleaned and redacted as an append does its texts.
func (s *Store) RedactText(ctx context.Context, org db.Org, text string) (string, error) {
	redacted, err := s.Redactor(ctx, s.db, org)
	if err != nil {
		return "", err
	}
	return redacted(text), nil
}

func (s *Store) redactorFrom(ctx context.Context, d db.DB, org db.Org) (*redact.Redactor, error) {
	if r, ok := s.redactors.Load(org); ok {
		return r.(*redact.Redactor), nil
	}
	key, err := db.One[[]byte](ctx, d, `SELECT redaction_key FROM organizations WHERE org = $1`, org)
	if err != nil {
		return nil, err
	}
	r, _ := s.redactors.LoadOrStore(org, redact.New(key, redact.Options{Entropy: s.o.Entropy}))
	return r.(*redact.Redactor), nil
}

// Cleaned returns drafts as an append stores them: checked, cleaned and redacted. No draft is the result of a
// tool, of which an append may store a part elsewhere.
func (s *Store) Cleaned(ctx context.Context, org db.Org, drafts []Draft) ([]Draft, error) {
	r, err := s.redactor(ctx, org)
	if err != nil {
		return nil, err
	}
	cleaned := make([]Draft, len(drafts))
	for i, d := range drafts {
		e, err := newEntry(d, r, time.Now(), nil)
		if err != nil {
			return nil, &DraftError{At: i, Err: err}
		}
		e.CreatedAt = d.CreatedAt
		cleaned[i] = e.Draft
	}
	return cleaned, nil
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

// escapes matches the escapes of a JSON text, a pair of surrogates as one.
var escapes = regexp.MustCompile(
	`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// CleanEscapes returns a JSON text with U+FFFD in place of each escape of half a surrogate pair, which providers
// refuse, and ␀ (U+2400) in place of each escaped NUL. It returns other texts unchanged.
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

// unread are the fields with images in base64, and with what a provider encrypted or signed: a redactor would find
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

// Redacted returns drafts with their texts cleaned and redacted as an append stores them, and nothing else changed.
func (s *Store) Redacted(ctx context.Context, org db.Org, drafts []Draft) ([]Draft, error) {
	r, err := s.redactor(ctx, org)
	if err != nil {
		return nil, err
	}
	redacted := make([]Draft, len(drafts))
	for i, d := range drafts {
		d.Content = slices.Clone(d.Content)
		for n := range d.Content {
			d.Content[n].clean(r)
			if err := d.Content[n].cleanJSON(r); err != nil {
				return nil, &DraftError{At: i, Err: err}
			}
		}
		for _, f := range d.fields() {
			if *f.value != nil {
				*f.value = new(cleanedID(**f.value, r))
			}
		}
		redacted[i] = d
	}
	return redacted, nil
}
