package policy

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loci-memory/loci/db"
)

// oneCutter returns ErrInvalid if a policy has two steps that say what leaves: only the first would cut.
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

// CheckOver returns ErrInvalid unless raw can be the layer of a place over farther layers, and makes a policy with them
// that can be carried out. What farther places set later is not known: where it makes another cutter of it, the layer
// changes nothing.
func CheckOver(raw []byte, place string, farther ...Layer) error {
	e, err := Layered(farther...)
	if err == nil {
		_, err = e.over(Layer{place, raw})
	}
	return err
}

// checkChanges returns ErrInvalid unless some changes can be those of a policy that is not known. Two cutters are one
// too many for any.
func checkChanges(changes map[string]json.RawMessage) error {
	given := Policy{}
	of, err := Preset(Default)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if _, known := mechanisms[name]; known && string(changes[name]) == "null" {
			continue
		}
		if err == nil {
			of, err = of.with(name, changes[name])
		}
		if m, known := mechanisms[name]; known && m.Stage == Compact {
			given.Steps = append(given.Steps, m.New())
		}
	}
	return cmp.Or(err, given.oneCutter())
}
