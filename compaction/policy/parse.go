package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Parse reads a policy in one of three forms: the name of a preset; an object with a preset and an object of steps; or
// an object with a list of steps. An object of steps changes settings of the preset's steps; null leaves a step out,
// and a step that the preset lacks is added. ErrInvalid says what is wrong.
func Parse(raw json.RawMessage) (Policy, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return Preset(name)
	}
	var object struct {
		Preset string          `json:"preset"`
		Steps  json.RawMessage `json:"steps"`
	}
	if err := decode(raw, &object); err != nil {
		return Policy{}, db.Invalid("A policy is the name of a preset, or an object with preset and steps: %v", err)
	}
	var p Policy
	var err error
	if object.Preset != "" {
		if p, err = Preset(object.Preset); err != nil {
			return p, err
		}
	}
	steps := bytes.TrimSpace(object.Steps)
	switch {
	case len(steps) == 0 || string(steps) == "null":
		if object.Preset == "" {
			return p, db.Invalid("A policy names a preset, or lists steps")
		}
		return p, nil
	case steps[0] == '[' && object.Preset != "":
		return p, db.Invalid("A policy with a preset changes its steps by an object of them; a list of steps stands alone")
	case steps[0] == '[':
		if p, err = pipeline(steps); err == nil && len(p.Steps) == 0 {
			return p, db.Invalid("A policy has at least one step")
		}
		return p, cmp.Or(err, p.oneCutter())
	case object.Preset == "":
		return p, db.Invalid("A policy without a preset lists its steps: [{\"step\": \"snip\"}]")
	}
	if p, err = p.changed(steps); err != nil {
		return p, err
	}
	return p, p.oneCutter()
}

// Written returns a policy for Parse from what a caller wrote: JSON, or a name without quotes.
func Written(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	raw, _ := json.Marshal(text) // a text can always be marshaled
	return raw
}

// pipeline reads a list of steps. Each is an object with the step's name and its settings.
func pipeline(raw []byte) (p Policy, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return p, db.Invalid("The steps of a policy must be a list of objects")
	}
	for i, item := range list {
		var settings map[string]json.RawMessage
		var name string
		if json.Unmarshal(item, &settings) != nil || json.Unmarshal(settings["step"], &name) != nil {
			return p, db.Invalid("Item %d of a policy's steps must be an object with the name of a step as step", i)
		}
		delete(settings, "step")
		if p.index(name) >= 0 {
			return p, db.Invalid("The step %q is listed twice", db.Short(name))
		}
		settingsJSON, err := json.Marshal(settings)
		if err != nil {
			return p, err
		}
		if p, err = p.with(name, settingsJSON); err != nil {
			return p, err
		}
	}
	return p, nil
}

// changed returns the policy with the changes in an object of steps.
func (p Policy) changed(raw []byte) (Policy, error) {
	var steps map[string]json.RawMessage
	if json.Unmarshal(raw, &steps) != nil {
		return p, db.Invalid("The steps of a policy must be a list, or an object of settings by the steps' names")
	}
	names := make([]string, 0, len(steps))
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	var err error
	for _, name := range names {
		if p, err = p.with(name, steps[name]); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p Policy) index(name string) int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return NameOf(s) == name })
}

// onlyOf returns the name of the policy's only step in a stage; empty if there is none or several, or no such stage.
// "compact" thus names the cutter, whichever it is.
func (p Policy) onlyOf(stage string) (name string) {
	for _, s := range p.Steps {
		if stageOf(s).String() != stage {
			continue
		}
		if name != "" {
			return ""
		}
		name = NameOf(s)
	}
	return name
}

// with returns the policy with changed settings of a step. null leaves the step out.
func (p Policy) with(name string, settings json.RawMessage) (Policy, error) {
	if only := p.onlyOf(name); only != "" {
		name = only
	}
	m, ok := mechanisms[name]
	if !ok {
		return p, db.Invalid("There is no step %q. The steps are %s", db.Short(name), strings.Join(Names(), ", "))
	}
	p.Steps = slices.Clone(p.Steps)
	i := p.index(name)
	if string(settings) == "null" {
		if i < 0 {
			return p, db.Invalid("The policy has no step %q that could be left out", name)
		}
		p.Steps = slices.Delete(p.Steps, i, i+1)
		return p, nil
	}
	step := m.New()
	if i >= 0 { // copied, because presets are shared
		current, err := json.Marshal(p.Steps[i])
		if err != nil {
			return p, err
		}
		if err := json.Unmarshal(current, step); err != nil {
			return p, err
		}
	}
	if err := cmp.Or(decode(settings, step), withoutNull(settings)); err != nil {
		return p, db.Invalid("The step %s: %v", name, err)
	}
	if err := inRange(step); err != nil {
		return p, db.Invalid("The step %s: %v", name, err)
	}
	if i >= 0 {
		p.Steps[i] = step
	} else {
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

// inRange checks a step's numbers against the bounds in their tags, and its texts against their lists of values.
func inRange(step Step) error {
	for s := range settingsOf(step) {
		n, isNumber := s.number()
		if isNumber && (n < s.Min || n > s.Max) {
			return fmt.Errorf("%s is %s; it must be from %s to %s", s.Name, decimal(n), decimal(s.Min), decimal(s.Max))
		}
		if text, ok := s.Value.(string); ok && len(s.OneOf) > 0 && !slices.Contains(s.OneOf, text) {
			return fmt.Errorf("%s is %q; it must be one of %s", s.Name, db.Short(text), strings.Join(s.OneOf, ", "))
		}
	}
	return nil
}
