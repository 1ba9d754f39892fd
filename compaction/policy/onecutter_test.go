package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

// A policy with two steps that say what leaves is refused with the names of both, wherever it is set.
func TestASecondCutterIsRefused(t *testing.T) {
	t.Parallel()
	for _, preset := range policy.Presets() {
		if err := policy.Check(json.RawMessage(`"` + preset.Name + `"`)); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
	}
	for _, c := range []struct {
		farther, policy string
		two             []string // empty: the policy is accepted
	}{
		{"", `{"preset":"pi","steps":{"full":{}}}`, []string{"keep_recent", "full"}},
		{"", `{"preset":"letta","steps":{"full":{}}}`, []string{"slide", "full"}},
		{"", `{"steps":[{"step":"keep_recent"},{"step":"full"}]}`, []string{"keep_recent", "full"}},
		{"", `{"preset":"pi","steps":{"full":{},"keep_recent":null}}`, nil},
		{"", `{"preset":"pi","steps":{"compact":{"keep_recent_tokens":9}}}`, nil},
		{"", `{"steps":[{"step":"full"},{"step":"hard_truncate"}]}`, nil},
		{`"deck"`, `{"steps":{"older_turns":{}}}`, []string{"oldest_share", "older_turns"}},
		{`"deck"`, `{"steps":{"older_turns":{},"oldest_share":null}}`, nil},
		{`"deck"`, `{"steps":{"snip":{}}}`, nil},
		{`{"steps":[{"step":"snip"}]}`, `{"steps":{"older_turns":{}}}`, nil},
	} {
		raw, far := json.RawMessage(c.policy), policy.Layer{Place: policy.OfAgent, Policy: json.RawMessage(c.farther)}
		errs := map[string]error{"set": policy.CheckOver(raw, policy.OfConversation, far)}
		_, errs["called with"] = policy.Layered(far, policy.Layer{Place: policy.OfCall, Policy: raw})
		if c.farther == "" {
			errs["checked"] = policy.Check(raw)
			_, errs["parsed"] = policy.Parse(raw)
		} else if err := policy.Check(raw); err != nil {
			t.Errorf("%s without what it changes: %v", c.policy, err)
		}
		for how, err := range errs {
			names := err != nil
			for _, name := range c.two {
				names = names && errors.Is(err, db.ErrInvalid) && strings.Contains(err.Error(), name)
			}
			if names != (len(c.two) > 0) {
				t.Errorf("%s over %s, %s: %v", c.policy, c.farther, how, err)
			}
		}
	}
}
