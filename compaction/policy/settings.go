package policy

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Setting describes a step's setting. Its name ends in its unit: _chars, _bytes, _tokens, _share, _turns. Times are
// texts with a unit.
type Setting struct {
	Name  string   `json:"name"`
	Value any      `json:"value"`
	Min   float64  `json:"min,omitempty"` // for a number
	Max   float64  `json:"max,omitempty"`
	OneOf []string `json:"one_of,omitempty"` // for a text
	Words string   `json:"description"`
}

// settingsOf yields a step's settings in the order of its fields, including fields of embedded structs. Tags describe a
// setting: min and max bound a number; oneof lists a text's values, unless its type does; doc says what the setting
// does, unless the mechanism does.
func settingsOf(step Step) iter.Seq[Setting] {
	return func(yield func(Setting) bool) {
		words := mechanisms[NameOf(step)].Settings
		v := reflect.ValueOf(step).Elem()
		for _, field := range reflect.VisibleFields(v.Type()) {
			if field.Anonymous || !field.IsExported() {
				continue // the fields of an embedded struct follow
			}
			tag, value := field.Tag, v.FieldByIndex(field.Index)
			name, _, _ := strings.Cut(tag.Get("json"), ",")
			s := Setting{Name: name, Value: value.Interface(), Words: cmp.Or(tag.Get("doc"), words[name])}
			if _, ok := s.number(); ok {
				s.Min, s.Max = float(tag.Get("min"), 0), float(tag.Get("max"), math.MaxInt32)
			}
			if listed, ok := s.Value.(interface{ oneOf() []string }); ok {
				s.Value, s.OneOf = value.String(), listed.oneOf()
			}
			if list, ok := s.Value.([]string); ok && list == nil {
				s.Value = []string{}
			}
			if list := tag.Get("oneof"); list != "" {
				s.OneOf = strings.Split(list, ",")
			}
			if !yield(s) {
				return
			}
		}
	}
}

// number returns the setting's value if that is a number.
func (s Setting) number() (float64, bool) {
	switch n := s.Value.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// Settings returns the settings of a step.
func Settings(s Step) []Setting { return slices.Collect(settingsOf(s)) }

// Names returns the names of all mechanisms.
func Names() []string { return slices.Sorted(maps.Keys(mechanisms)) }

// Mechanisms returns all mechanisms, sorted by stage and then by name.
func Mechanisms() []Mechanism {
	all := make([]Mechanism, 0, len(mechanisms))
	for _, name := range Names() {
		all = append(all, mechanisms[name])
	}
	slices.SortStableFunc(all, func(a, b Mechanism) int { return int(a.Stage) - int(b.Stage) })
	return all
}
