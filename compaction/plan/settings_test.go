package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
)

func TestSettingsAreMerged(t *testing.T) {
	t.Parallel()
	base := plan.Defaults()
	base.Prompt, base.Model, base.Percentage, base.Goal = new("Be brief."), new("openai/small"), 0.4, 0.6
	defaultsWith := func(change func(*plan.Settings)) plan.Settings {
		s := base
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		raw  string
		want plan.Settings
	}{
		"nothing":           {``, base},
		"null":              {` null `, base},
		"an empty object":   {`{}`, base},
		"what is not known": {`{"keep_last": 3, "Mode": "all"}`, base},
		"one field":         {`{"trigger": 0.8}`, defaultsWith(func(s *plan.Settings) { s.Trigger = 0.8 })},
		"nulls are defaults": {`{"sliding_window_percentage": null, "goal": null, "model": null, "warning": null}`,
			defaultsWith(func(s *plan.Settings) { s.Percentage, s.Goal, s.Model = 0.3, 0.7, nil })},
		"no limit of chars": {`{"clip_chars": null}`, defaultsWith(func(s *plan.Settings) { s.ClipChars = nil })},
		"a limit of chars":  {`{"clip_chars": 100}`, defaultsWith(func(s *plan.Settings) { s.ClipChars = new(100) })},
		"the mode's prompt": {`{"mode": "all"}`, defaultsWith(func(s *plan.Settings) {
			s.Mode, s.Prompt = plan.All,
				nil
		})},
		"a prompt of its own": {`{"mode": "all", "prompt": "Be long."}`,
			defaultsWith(func(s *plan.Settings) { s.Mode, s.Prompt = plan.All, new("Be long.") })},
		"the same mode":  {`{"mode": "sliding_window"}`, base},
		"a blank prompt": {`{"prompt": " "}`, defaultsWith(func(s *plan.Settings) { s.Prompt = nil })},
		"a model's settings": {`{"model_settings": {"a": 1}}`,
			defaultsWith(func(s *plan.Settings) { s.ModelSettings = []byte(`{"a": 1}`) })},
		"the least that may": {`{"trigger": 0.5, "goal": 0.1, "sliding_window_percentage": 0.05}`,
			defaultsWith(func(s *plan.Settings) { s.Trigger, s.Goal, s.Percentage = 0.5, 0.1, 0.05 })},
		"the most that may": {`{"trigger": 0.98, "goal": 0.88, "sliding_window_percentage": 0.95}`,
			defaultsWith(func(s *plan.Settings) { s.Trigger, s.Goal, s.Percentage = 0.98, 0.88, 0.95 })},
		"a goal just below": {`{"trigger": 0.8, "goal": 0.7}`,
			defaultsWith(func(s *plan.Settings) { s.Trigger, s.Goal = 0.8, 0.7 })},
	} {
		before := *base.ClipChars
		got, err := plan.ParseSettings([]byte(c.raw), base)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if *base.ClipChars != before || *base.Prompt != "Be brief." {
			t.Fatalf("%s: what was merged over is changed", name)
		}
	}
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, says string }{
		{`[]`, "must be a JSON object"},
		{`{`, "must be a JSON object"},
		{`{"mode": "everything"}`, `mode is "everything"; it must be one of sliding_window, all, self_compact_all, ` +
			`self_compact_sliding_window`},
		{`{"mode": 3}`, "mode is 3; it must be a string"},
		{`{"trigger": 0.49}`, "trigger is 0.49; it must be from 0.5 to 0.98"},
		{`{"trigger": 0.99}`, "trigger is 0.99; it must be from 0.5 to 0.98"},
		{`{"trigger": "high"}`, `trigger is "high"; it must be a number`},
		{`{"goal": 0.81}`, "goal is 0.81; it must be from 0.1 to 0.80, which is 0.1 below the trigger"},
		{`{"goal": 0.05}`, "goal is 0.05; it must be from 0.1"},
		{`{"trigger": 0.75}`, "goal is 0.7; it must be from 0.1 to 0.65"},
		{`{"sliding_window_percentage": 30}`, "sliding_window_percentage is 30; it must be from 0.05 to 0.95"},
		{`{"sliding_window_percentage": 0}`, "sliding_window_percentage is 0; it must be from 0.05"},
		{`{"clip_chars": 99}`, "clip_chars is 99; it must be at least 100, or null for no limit"},
		{`{"clip_chars": 1.5}`, "clip_chars is 1.5; it must be a whole number"},
		{`{"prompt": "` + strings.Repeat("é", 20_001) + `"}`, "prompt has 20001 characters; it may have at most 20000"},
		{`{"model": "` + strings.Repeat("m", 513) + `"}`, "model has 513 bytes; it may have at most 512"},
		{`{"model_settings": [1]}`, "model_settings is [1]; it must be an object"},
		{`{"model_settings": {"a": "` + strings.Repeat("m", 70_000) + `"}}`, "it may have at most 65536"},
		{`{"warning": "yes"}`, `warning is "yes"; it must be true or false`},
	} {
		_, err := plan.ParseSettings([]byte(c.raw), plan.Defaults())
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 300 {
			t.Errorf("%.60s: %v, want %q", c.raw, err, c.says)
		}
	}
}
