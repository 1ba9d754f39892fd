package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

// A policy is read from a name, a changed preset or a list of steps. Anything else is refused, and the error says what
// is wrong.
func TestParse(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"four-layers"`: "",
		`{"preset":"four-layers","steps":{"snip":{"max_chars":500}}}`: "",
		`{"preset":"four-layers","steps":{"snip":null}}`:              "",
		`{"steps":[{"step":"snip","max_chars":500}]}`:                 "",
		`"nobody"`:                           "no policy \"nobody\"",
		`7`:                                  "the name of a preset",
		`{}`:                                 "names a preset, or lists steps",
		`{"preset":"four-layers","step":{}}`: `unknown field "step"`,
		`{"steps":{"snip":{}}}`:              "lists its steps",
		`{"PRESET":"pi"}`:                    `unknown field "PRESET"`,
		`{"preset":"pi","steps":{"dedup":{}},"Steps":{"snip":{}}}`:                    `unknown field "Steps"`,
		`{"preset":"pi","preset":"deck"}`:                                             `the field "preset" is there twice`,
		`{"steps":[{"step":"snip","MAX_CHARS":700}]}`:                                 `unknown field "MAX_CHARS"`,
		`{"preset":"four-layers","steps":{"snip":{"max_chars":700,"max_chars":900}}}`: "is there twice",
		`{"preset":"four-layers","steps":[{"step":"snip"}]}`:                          "stands alone",
		`{"steps":[]}`: "at least one step",
		`{"steps":[{"step":"snip"},{"step":"snip"}]}`:                               "listed twice",
		`{"steps":[{"max_chars":5}]}`:                                               "name of a step",
		`{"steps":[{"step":"blur"}]}`:                                               `no step "blur"`,
		`{"steps":[{"step":"snip","max_chars":5}]}`:                                 "must be from 100",
		`{"steps":[{"step":"snip","max_chars":"5"}]}`:                               "max_chars",
		`{"steps":[{"step":"snip","max_tokens":500}]}`:                              `unknown field "max_tokens"`,
		`{"preset":"four-layers","steps":{"snip":{"head_share":1.5}}}`:              "head_share is 1.5",
		`{"steps":[{"step":"snip","max_chars":1e300}]}`:                             "max_chars cannot be the number 1e300",
		`{"steps":[{"step":"tokens","above_tokens":0}]}`:                            "it must be from 1 to 1000000",
		`{"steps":[{"step":"snip","max_chars":[5]}]}`:                               "max_chars cannot be a list",
		`{"steps":[{"step":"snip","max_chars":{}}]}`:                                "max_chars cannot be an object",
		`{"steps":[{"step":"snip","max_chars":true}]}`:                              "max_chars cannot be true or false",
		`{"steps":[{"step":"snip","max_chars":null}]}`:                              "max_chars cannot be null",
		`{"steps":[{"step":"dedup","tools":[null]}]}`:                               "tools[0] cannot be null",
		`{"steps":[{"step":"dedup","tools":null}]}`:                                 "tools cannot be null",
		`{"preset":"four-layers","steps":{"snip":[]}}`:                              "The step snip: got a list",
		`{"steps":[{"step":"when","all":{}}]}`:                                      "must be a list of objects",
		`{"steps":[{"step":"when","all":[{"step":"tokens","above_tokens":null}]}]}`: "above_tokens cannot be null",
	} {
		_, err := policy.Parse([]byte(raw))
		ok := err == nil && want == "" || errors.Is(err, db.ErrInvalid) && strings.Contains(err.Error(), want)
		if !ok || err != nil && want == "" {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	changed, err := policy.Parse([]byte(`{"preset":"four-layers","steps":{"snip":{"max_chars":500}}}`))
	if err != nil || policy.Settings(changed.Steps[0])[0].Value != 500 {
		t.Fatal(changed, err)
	}
	again, err := policy.Preset("four-layers")
	if err != nil || policy.Settings(again.Steps[0])[0].Value != 10_000 {
		t.Error("a change of a copy changed the preset", again, err)
	}
}

// For any input Parse returns a policy with settings in their ranges, or says what is wrong.
func FuzzParse(f *testing.F) {
	for _, p := range policy.Presets() {
		f.Add(fmt.Sprintf("%q", p.Name))
		for _, s := range p.Policy().Steps {
			raw, err := json.Marshal(map[string]any{"preset": p.Name, "steps": map[string]any{policy.NameOf(s): s}})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(raw))
		}
	}
	for _, m := range policy.Mechanisms() {
		f.Add(fmt.Sprintf(`{"steps":[{"step":%q}]}`, m.Name))
	}
	v := newHistory(1)
	v.live(30)
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := policy.Parse([]byte(raw))
		if err != nil {
			if !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		for _, s := range p.Steps {
			for _, setting := range policy.Settings(s) {
				n, ok := setting.Value.(float64)
				if i, is := setting.Value.(int); is {
					n, ok = float64(i), true
				}
				if ok && (n < setting.Min || n > setting.Max) {
					t.Errorf("%q: %s is %v, from %v to %v", raw, setting.Name, n, setting.Min, setting.Max)
				}
			}
		}
		v.Window = 8000
		p.Prune(v.View, policy.Moment{Now: v.now})
	})
}

// A policy that changes a preset's lists leaves the preset itself unchanged.
func TestPresetsAreNotChanged(t *testing.T) {
	t.Parallel()
	before := stepsOf(t, "claude-code")
	if _, err := policy.Parse([]byte(`{"preset":"claude-code","steps":{"microcompact":{"tools":["x"]}}}`)); err != nil {
		t.Fatal(err)
	}
	if after := stepsOf(t, "claude-code"); after != before {
		t.Errorf("%s, before %s", after, before)
	}
}

func stepsOf(t *testing.T, preset string) string {
	t.Helper()
	p, err := policy.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(p.Steps)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Each mechanism has a source, a description, and settings with names and bounds that a reader understands.
func TestMechanismsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, m := range policy.Mechanisms() {
		if m.Source == "" || m.Words == "" {
			t.Errorf("%s has no source or words", m.Name)
		}
		for _, s := range policy.Settings(m.New()) {
			if s.Name == "" || s.Words == "" || s.Max < s.Min {
				t.Errorf("%s: setting %+v", m.Name, s)
			}
		}
	}
}

func TestEveryMechanismIsInTheTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	described := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		described += strings.Count(string(raw), ") describe() Mechanism {\n")
	}
	if got := len(policy.Mechanisms()); got != described || got == 0 {
		t.Errorf("%d mechanisms are in the table, and %d are described", got, described)
	}
}
