package lab

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

// Compared is a policy in a comparison.
type Compared struct {
	Name   string          `json:"name"`   // its name in the report
	Asked  json.RawMessage `json:"policy"` // as it was written: a name or an object
	Policy policy.Policy   `json:"-"`
}

// Policies returns the policies of a comparison, each only once: the written ones, or all presets if none is written.
// Written ones without a name are told apart by a letter. ErrInvalid says what is wrong.
func Policies(written []json.RawMessage) (all []Compared, err error) {
	if len(written) == 0 {
		for _, p := range policy.Presets() {
			written = append(written, policy.Written(p.Name))
		}
	}
	var texts []string
	for _, raw := range written {
		var text bytes.Buffer
		if err := json.Compact(&text, raw); err != nil {
			return nil, db.Invalid("A policy is no JSON: %v", err)
		}
		texts = append(texts, text.String())
	}
	for i, text := range Distinct(texts) {
		p, err := policy.Parse([]byte(text))
		if err != nil {
			return nil, err
		}
		name := p.Preset
		if text[0] != '"' {
			name = cmp.Or(name, "custom") + " " + string('a'+rune(i%26))
		}
		all = append(all, Compared{name, json.RawMessage(text), p})
	}
	return all, nil
}
