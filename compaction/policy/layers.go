package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/loci-memory/loci/db"
)

// These places may set a policy, the farthest first. A nearer place changes single steps of the farther places' policy.
const (
	OfServer       = "server"
	OfOrganization = "organization"
	OfAgent        = "agent"
	OfConversation = "conversation"
	OfCall         = "call"
)

// Default is the preset that layers change if none of them names a preset.
const Default = "letta"

// Layer is the policy setting of one place: a whole policy, or an object of steps that changes the policy of the
// farther layers. Empty or null sets nothing.
type Layer struct {
	Place  string
	Policy json.RawMessage
}

// Effective is the policy that all layers make together.
type Effective struct {
	Policy
	SetBy   string                       // the place that chose the preset or listed the steps; empty if none did
	Origins map[string]map[string]string // step → setting → the place that set it, if not SetBy
	LeftOut map[string]string            // name of a step that was left out → the place that left it out
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

// Layered returns the policy of layers, the farthest first. A stored layer that this version cannot read is ignored;
// for a layer of the call, ErrInvalid says what is wrong. Without layers the policy has no steps.
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

// over returns the policy after a nearer layer.
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
	for stepOrStage, settings := range changes {
		name := cmp.Or(e.onlyOf(stepOrStage), stepOrStage)
		if string(settings) != "null" {
			origins[name] = originsOf(origins[name], settings, l.Place)
			delete(leftOut, name)
			continue
		}
		if _, known := mechanisms[name]; known && e.index(name) < 0 {
			delete(changes, stepOrStage) // a farther layer already left it out
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

// leftOut returns the steps of the policy's preset that the policy lacks. It names place as the one that left them out.
func (p Policy) leftOut(place string) map[string]string {
	preset, err := Preset(p.Preset)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, step := range preset.Steps {
		if name := NameOf(step); p.index(name) < 0 {
			out[name] = place
		}
	}
	return out
}

// originsOf returns the places that set a step's settings, after place changed settings.
func originsOf(before map[string]string, settings json.RawMessage, place string) map[string]string {
	origins := maps.Clone(before)
	if origins == nil {
		origins = map[string]string{}
	}
	var changed map[string]json.RawMessage
	if json.Unmarshal(settings, &changed) == nil {
		for name := range changed {
			origins[name] = place
		}
	}
	return origins
}

// changesOf returns the steps of an object that has no other field. Such an object changes the policy of the farther
// layers.
func changesOf(raw []byte) (steps map[string]json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) != 1 {
		return nil, false
	}
	text := bytes.TrimSpace(fields["steps"])
	return steps, len(text) > 0 && text[0] == '{' && json.Unmarshal(text, &steps) == nil
}

// Origin returns the place that set a step's setting; empty if it is the value of the preset or the step's default.
func (e Effective) Origin(step, setting string) string { return e.Origins[step][setting] }

// Name returns the policy's name: the name of its preset, changed or not, or custom for a list of steps.
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
