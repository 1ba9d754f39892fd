package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// RecallSettings say what is recalled unasked for a user's message, and put in behind it. Nil fields use defaults.
type RecallSettings struct {
	BudgetTokens  *int     `json:"budget_tokens,omitempty" required:"false" minimum:"50" maximum:"8000" doc:"Of a note; 600."` //nolint:lll // a tag is one line
	MinConfidence *float64 `json:"min_confidence,omitempty" required:"false" minimum:"0" maximum:"1" doc:"Of a hit; 0.5."`

	Kinds []string `json:"kinds,omitempty" required:"false" nullable:"false" doc:"Of memory_file, passage, file, message."`
}

// RecallKinds are the memories from which is recalled.
var RecallKinds = []string{"memory_file", "passage", "file", "message"}

// Bounds of the settings of recall.
const (
	minRecallTokens = 50
	maxRecallTokens = 8_000
)

// ParseRecall reads settings of recall from a JSON object; nil for null or nothing. Its error says what is wrong.
func ParseRecall(raw []byte) (*RecallSettings, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // as documented
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var s RecallSettings
	if err := d.Decode(&s); err != nil || d.More() {
		return nil, fmt.Errorf("expected an object with budget_tokens, min_confidence and kinds. Got: %s",
			db.Short(string(raw)))
	}
	return &s, s.Check()
}

// Check returns ErrInvalid for the first setting with a wrong value.
func (s RecallSettings) Check() error {
	if n := s.BudgetTokens; n != nil && (*n < minRecallTokens || *n > maxRecallTokens) {
		return db.Invalid("recall.budget_tokens is %d; it must be from %d to %d", *n, minRecallTokens, maxRecallTokens)
	}
	if c := s.MinConfidence; c != nil && !(*c >= 0 && *c <= 1) {
		return db.Invalid("recall.min_confidence is %v; it must be from 0 to 1", *c)
	}
	for _, kind := range s.Kinds {
		if !slices.Contains(RecallKinds, kind) {
			return db.Invalid("recall.kinds has %q; it may have %s", db.Short(kind), strings.Join(RecallKinds, ", "))
		}
	}
	return nil
}

// Has reports whether is recalled from a memory.
func (s RecallSettings) Has(kind string) bool {
	return len(s.Kinds) == 0 || slices.Contains(s.Kinds, kind)
}

// Budget returns the tokens of a note; 0 for the default.
func (s RecallSettings) Budget() int {
	if s.BudgetTokens == nil {
		return 0
	}
	return *s.BudgetTokens
}

// Confidence returns the least confidence of a hit; 0 for the default.
func (s RecallSettings) Confidence() float64 {
	if s.MinConfidence == nil {
		return 0
	}
	return max(*s.MinConfidence, 1e-9)
}
