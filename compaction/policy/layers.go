package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/loci-memory/loci/db"
)

// The places that set a policy, the farthest first. A nearer one changes what the farther ones set, step by step.
const (
	OfServer       = "server"
	OfOrganization = "organization"
	OfAgent        = "agent"
	OfConversation = "conversation"
	OfCall         = "call"
)

// Default is the preset that layers change if none of them names one.
const Default = "letta"

// Layer is what one place sets: a policy as Parse reads it, or an object of steps that changes that of the farther
// layers. Empty or null sets nothing.
type Layer struct {
	Place  string
	Policy json.RawMessage
}

// Effective is the policy that layers make together.
type Effective struct {
	Policy
	SetBy   string                       // the place that names the preset or lists the steps; empty if none does
	Origins map[string]map[string]string // the place that set a setting of a step, where it is not SetBy
	LeftOut map[string]string            // steps of the preset, or of farther places, by the place that left them out
}

// MaxBytes bounds a policy's JSON.
const MaxBytes = 64 << 10

// Check returns ErrInvalid unless raw can be a layer.
func Check(raw json.RawMessage) error {
	if len(raw) > MaxBytes {
		return db.Invalid("A policy has %d bytes; it may have at most %d", len(raw), MaxBytes)
	}
	if changes, ok := changesOf(bytes.TrimSpace(raw)); ok && len(changes) > 0 {
		return checkChanges(changes)
	}
	_, err := Effective{}.over(Layer{OfCall, raw})
	return err
}

// Layered returns the policy of layers, the farthest first. Layers that were stored and that this version cannot read
// change nothing; of a call's, ErrInvalid says what is wrong. Without a layer it has no steps.
func Layered(layers ...Layer) (e Effective, err error) {
	for _, l := range layers {
		next, err := e.over(l)
		if err != nil && l.Place == OfCall {
			return e, err
		}
		if err == nil {
			e = next
		}
	}
	return e, nil
}

// over returns the policy with a nearer layer.
func (e Effective) over(l Layer) (Effective, error) {
	raw := bytes.TrimSpace(l.Policy)
	if len(raw) == 0 || string(raw) == "null" {
		return e, nil
	}
	changes, ok := changesOf(raw)
	if ok && len(changes) == 0 {
		return e, db.Invalid("The steps of a policy are an empty object; name a step, or a preset")
	}
	if !ok {
		p, err := Parse(raw)
		return Effective{Policy: p, SetBy: l.Place, LeftOut: p.leftOut(l.Place)}, err
	}
	if e.SetBy == "" && len(e.Steps) == 0 {
		if p, err := Preset(Default); err == nil {
			e.Policy = p
		}
	}
	origins := maps.Clone(e.Origins)
	if origins == nil {
		origins = map[string]map[string]string{}
	}
	leftOut := maps.Clone(e.LeftOut)
	if leftOut == nil {
		leftOut = map[string]string{}
	}
	for given, settings := range changes {
		name := cmp.Or(e.onlyOf(given), given)
		if string(settings) != "null" {
			origins[name] = originsOf(origins[name], settings, l.Place)
			delete(leftOut, name)
			continue
		}
		if _, known := mechanisms[name]; known && e.index(name) < 0 {
			delete(changes, given) // a farther layer has left it out already
		} else {
			leftOut[name] = l.Place
		}
		delete(origins, name)
	}
	steps, err := json.Marshal(changes)
	if err != nil {
		return e, err
	}
	if e.Policy, err = e.changed(steps); err != nil {
		return e, err
	}
	e.Origins, e.LeftOut = origins, leftOut
	return e, e.oneCutter()
}

// leftOut returns the steps of the policy's preset that it lacks, all left out by a place.
func (p Policy) leftOut(place string) map[string]string {
	of, err := Preset(p.Preset)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, step := range of.Steps {
		if name := NameOf(step); p.index(name) < 0 {
			out[name] = place
		}
	}
	return out
}

// originsOf returns the places that set the settings of a step, with those of a change.
func originsOf(was map[string]string, settings json.RawMessage, place string) map[string]string {
	now := maps.Clone(was)
	if now == nil {
		now = map[string]string{}
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(settings, &given) == nil {
		for name := range given {
			now[name] = place
		}
	}
	return now
}

// changesOf returns the steps of an object that has only these: it changes the policy of the farther layers.
func changesOf(raw []byte) (steps map[string]json.RawMessage, ok bool) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || len(given) != 1 {
		return nil, false
	}
	text := bytes.TrimSpace(given["steps"])
	return steps, len(text) > 0 && text[0] == '{' && json.Unmarshal(text, &steps) == nil
}

// Origin returns the place that set a setting of a step; empty if it is the preset's own value, or the step's.
func (e Effective) Origin(step, setting string) string { return e.Origins[step][setting] }

// Name returns the name of the policy: its preset, changed or not, or custom for a list of steps.
func (e Effective) Name() string {
	switch {
	case e.Preset == "" && len(e.Steps) == 0:
		return Default
	case e.Preset == "":
		return "custom"
	case e.isChanged():
		return e.Preset + " (changed)"
	}
	return e.Preset
}

func (e Effective) isChanged() bool {
	of, err := Preset(e.Preset)
	return err == nil && !reflect.DeepEqual(of.Steps, e.Steps)
}

// Equal reports whether two policies have the same steps with the same settings.
func (p Policy) Equal(other Policy) bool { return reflect.DeepEqual(p.Steps, other.Steps) }
