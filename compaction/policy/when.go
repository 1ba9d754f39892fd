package policy

import (
	"encoding/json"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
)

// When is due if all of its triggers are. In a list of steps, one due trigger is enough.
type When struct {
	All Triggers `json:"all" doc:"A list of triggers with their settings, all of which must be due."`
}

func (*When) describe() Mechanism {
	return Mechanism{Name: "when", Stage: Pressure, Source: "LangChain",
		Words: "Compacts when several triggers are due at once.", New: func() Step { return &When{} }}
}

// Due reports whether all triggers are due.
func (s *When) Due(v clip.View, at Moment) bool {
	for _, t := range s.All {
		if due, ok := t.(Trigger); !ok || !due.Due(v, at) {
			return false
		}
	}
	return len(s.All) > 0
}

// triggers implements conjunction.
func (s *When) triggers() []Step { return s.All }

// Triggers is a list of triggers. In JSON it looks like a list of steps.
type Triggers []Step

// UnmarshalJSON reads a list of at least one trigger. ErrInvalid says what is wrong.
func (t *Triggers) UnmarshalJSON(raw []byte) error {
	p, err := pipeline(raw)
	if err != nil {
		return err
	}
	if len(p.Steps) == 0 {
		return db.Invalid("the list has no trigger")
	}
	for _, s := range p.Steps {
		if _, ok := s.(Trigger); !ok {
			return db.Invalid("the step %s is no trigger", NameOf(s))
		}
	}
	*t = p.Steps
	return nil
}

// MarshalJSON writes the triggers with their settings.
func (t Triggers) MarshalJSON() ([]byte, error) {
	all := make([]map[string]any, 0, len(t))
	for _, s := range t {
		one := map[string]any{"step": NameOf(s)}
		for set := range settingsOf(s) {
			one[set.Name] = set.Value
		}
		all = append(all, one)
	}
	return json.Marshal(all)
}
