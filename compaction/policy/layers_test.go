package policy_test

import (
	"errors"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

func layered(t *testing.T, raws ...string) policy.Effective {
	t.Helper()
	places := []string{policy.OfServer, policy.OfOrganization, policy.OfAgent, policy.OfConversation, policy.OfCall}
	var layers []policy.Layer
	for i, raw := range raws {
		layers = append(layers, policy.Layer{Place: places[i], Policy: []byte(raw)})
	}
	e, err := policy.Layered(layers...)
	if err != nil {
		t.Fatal(raws, err)
	}
	return e
}

// snipOf returns the settings of the step snip by name; nil if the policy lacks the step.
func snipOf(e policy.Effective) map[string]any {
	for _, s := range e.Steps {
		if policy.NameOf(s) == "snip" {
			settings := map[string]any{}
			for _, setting := range policy.Settings(s) {
				settings[setting.Name] = setting.Value
			}
			return settings
		}
	}
	return nil
}

// The nearer layer wins for each setting, and each setting says where it comes from.
func TestTheNearerLayerWins(t *testing.T) {
	t.Parallel()
	e := layered(t, `"four-layers"`, `{"steps":{"snip":{"max_chars":800}}}`, `{"steps":{"snip":{"head_share":0.5}}}`,
		`null`, `{"steps":{"snip":{"max_chars":400}}}`)
	snip := snipOf(e)
	if snip["max_chars"] != 400 || snip["head_share"] != 0.5 || snip["tail_share"] != 0.3 || e.SetBy != policy.OfServer {
		t.Errorf("%v, set by %s", snip, e.SetBy)
	}
	for setting, want := range map[string]string{"max_chars": policy.OfCall, "head_share": policy.OfAgent,
		"tail_share": ""} {
		if got := e.Origin("snip", setting); got != want {
			t.Errorf("%s comes from %q, want %q", setting, got, want)
		}
	}
	if e.Name() != "four-layers (changed)" {
		t.Error(e.Name())
	}
	if e = layered(t, `{"steps":[{"step":"snip","max_chars":500}]}`, `"four-layers"`); snipOf(e)["max_chars"] != 10_000 ||
		e.SetBy != policy.OfOrganization || e.Name() != "four-layers" {
		t.Error("a nearer preset does not stand alone", snipOf(e), e.SetBy)
	}
	if e = layered(t, `"four-layers"`, `{"steps":{"snip":null}}`, `{"steps":{"snip":null}}`); snipOf(e) != nil {
		t.Error("a step that two layers leave out is there", snipOf(e))
	}
	e = layered(t, `"letta"`, `{"steps":{"token_clip":{"max_tokens":900}}}`, `{"steps":{"token_clip":{}}}`)
	for setting, want := range map[string]string{"max_tokens": policy.OfOrganization, "head_share": ""} {
		if got := e.Origin("token_clip", setting); got != want {
			t.Errorf("%s of an added step comes from %q, want %q", setting, got, want)
		}
	}
	if e = layered(t); len(e.Steps) != 0 || e.Name() != policy.Default {
		t.Error("no layer makes a policy", e)
	}
}

// If a place leaves out a step, the policy names the step and the place, until a nearer place adds the step again.
func TestStepsThatAreLeftOutAreNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		layers []string
		want   map[string]string
	}{
		{[]string{`"four-layers"`}, map[string]string{}},
		{[]string{`"four-layers"`, `{"steps":{"snip":null}}`}, map[string]string{"snip": policy.OfOrganization}},
		{[]string{`"four-layers"`, `{"steps":{"snip":null}}`, `{"steps":{"snip":{}}}`}, map[string]string{}},
		{[]string{`"four-layers"`, `{"steps":{"snip":null}}`, `{"steps":{"snip":null}}`},
			map[string]string{"snip": policy.OfOrganization}},
		{[]string{`{"preset":"four-layers","steps":{"snip":null}}`}, map[string]string{"snip": policy.OfServer}},
		{[]string{`"four-layers"`, `{"steps":{"snip":null}}`, `"four-layers"`}, map[string]string{}},
	} {
		got := layered(t, tt.layers...).LeftOut
		if len(got) != len(tt.want) || got["snip"] != tt.want["snip"] {
			t.Errorf("%v: left out %v, want %v", tt.layers, got, tt.want)
		}
	}
}

// A stored layer that cannot be read is ignored. A call's layer is refused, and the error says what is wrong.
func TestABadLayer(t *testing.T) {
	t.Parallel()
	if e := layered(t, `"four-layers"`, `"no such"`); e.Preset != "four-layers" {
		t.Error(e)
	}
	for _, raw := range []string{`{"steps":{"blur":{}}}`, `{"steps":{}}`} {
		_, err := policy.Layered(policy.Layer{Place: policy.OfCall, Policy: []byte(raw)})
		if !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
