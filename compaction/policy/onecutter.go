package policy

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loci-memory/loci/db"
)

// oneCutter returns ErrInvalid if a policy has two cutters, because only the first would cut.
func (p Policy) oneCutter() error {
	first := ""
	for _, s := range p.Steps {
		if _, ok := s.(Cutter); !ok || stageOf(s) != Compact {
			continue
		}
		if first != "" {
			return db.Invalid("The policy has two steps that say what leaves, %s and %s, of which only one can. Leave one out: "+
				"null in an object of steps does", first, NameOf(s))
		}
		first = NameOf(s)
	}
	return nil
}

// CheckOver returns ErrInvalid unless raw can be the layer of place over the farther layers, and gives a working policy
// together with them. Farther places may change later; if the layer then makes a second cutter, it is ignored.
func CheckOver(raw []byte, place string, farther ...Layer) error {
	e, err := Layered(farther...)
	if err == nil {
		_, err = e.over(Layer{place, raw})
	}
	return err
}

// checkChanges returns ErrInvalid if the changes cannot work with any policy, because they have two cutters.
func checkChanges(changes map[string]json.RawMessage) error {
	cutters := Policy{}
	changed, err := Preset(Default)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if _, known := mechanisms[name]; known && string(changes[name]) == "null" {
			continue
		}
		if err == nil {
			changed, err = changed.with(name, changes[name])
		}
		if m, known := mechanisms[name]; known && m.Stage == Compact {
			cutters.Steps = append(cutters.Steps, m.New())
		}
	}
	return cmp.Or(err, cutters.oneCutter())
}
