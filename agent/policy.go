package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// now is the clock for all steps of policies.
func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// readPolicy reads a prompt's settings and policy. call, a call's own settings, may change them; ErrInvalid if call is
// wrong.
func (s *Store) readPolicy(ctx context.Context, org db.Org, call json.RawMessage, p *Prompt) error {
	stored, err := s.policiesAbove(ctx, org)
	if err != nil {
		return err
	}
	return s.setPolicy(stored, call, p)
}

// setPolicy is readPolicy with the policies above the agent already read.
func (s *Store) setPolicy(stored policiesAbove, call json.RawMessage, p *Prompt) (err error) {
	if p.settings, err = p.Agent.compactionSettings(call); err != nil {
		return err
	}
	p.policy, err = policy.Layered(s.layersUnder(stored, p.Agent, policyIn(call))...)
	return err
}

// policiesAbove are the stored policies for all agents of the server and of an organization; nil if there is none.
type policiesAbove struct{ Server, Organization json.RawMessage }

func (s *Store) policiesAbove(ctx context.Context, org db.Org) (policiesAbove, error) {
	return db.One[policiesAbove](ctx, s.DB, `
		SELECT (SELECT policy FROM server_policies ORDER BY key DESC LIMIT 1) AS server,
		       (SELECT policy FROM organizations WHERE org = $1) AS organization`, org)
}

// layers returns the layers of an agent's policy in a conversation, the farthest first.
func (s *Store) layers(ctx context.Context, org db.Org, a Agent, call json.RawMessage) ([]policy.Layer, error) {
	stored, err := s.policiesAbove(ctx, org)
	if err != nil {
		return nil, err
	}
	return s.layersUnder(stored, a, call), nil
}

func (s *Store) layersUnder(stored policiesAbove, a Agent, call json.RawMessage) []policy.Layer {
	return []policy.Layer{s.ofServer(stored.Server),
		{Place: policy.OfOrganization, Policy: stored.Organization},
		{Place: policy.OfAgent, Policy: policyIn(a.Settings.CompactionSettings)},
		{Place: policy.OfConversation, Policy: policyIn(a.InConversation)}, {Place: policy.OfCall, Policy: call}}
}

// ofServer returns the server's layer: the stored policy, or the one in the server's settings if none is stored.
func (s *Store) ofServer(stored json.RawMessage) policy.Layer {
	if stored == nil {
		stored = s.Policy
	}
	return policy.Layer{Place: policy.OfServer, Policy: stored}
}

// OrganizationPolicy returns the policy that an organization sets for its agents; nil if it sets none.
func (s *Store) OrganizationPolicy(ctx context.Context, org db.Org) (json.RawMessage, error) {
	raw, err := db.One[json.RawMessage](ctx, s.DB, `SELECT policy FROM organizations WHERE org = $1`, org)
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	return raw, err
}

// ConversationSettings returns a conversation's compaction settings after a change, in the form to store. An absent
// field stays, null unsets a field, and null instead of the object unsets all. ErrInvalid if the settings are wrong.
func (s *Store) ConversationSettings(ctx context.Context, org db.Org, agentID string, stored, change json.RawMessage) (
	json.RawMessage, error) {
	change = bytes.TrimSpace(change)
	if len(change) == 0 || string(change) == "null" {
		return change, nil
	}
	a, err := s.Agent(ctx, org, agentID)
	if err != nil {
		return nil, err
	}
	if _, err := a.compactionSettings(change); err != nil {
		return nil, err
	}
	var all, more map[string]json.RawMessage
	if err := json.Unmarshal(change, &more); err != nil {
		return nil, err
	}
	if json.Unmarshal(stored, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, value := range more {
		if all[name] = value; string(value) == "null" {
			delete(all, name)
		}
	}
	if len(all) == 0 {
		return json.RawMessage(`null`), nil
	}
	merged, err := json.Marshal(all)
	if err == nil {
		_, err = a.compactionSettings(merged)
	}
	return merged, err
}

// handedOut returns when a conversation's last prompt was handed out, and the position of its last message; zero values
// before the first prompt.
func (s *Store) handedOut(ctx context.Context, org db.Org, c recall.Conversation) (at time.Time, last int, err error) {
	type row struct {
		At   time.Time `db:"handed_out_at"`
		Last int       `db:"last_position"`
	}
	r, err := db.One[row](ctx, s.DB, `
		SELECT handed_out_at, last_position FROM prompts
		WHERE org = $1 AND conversation_key = $2
		ORDER BY seq DESC, key DESC LIMIT 1`, org, c.Key)
	if errors.Is(err, db.ErrNotFound) {
		return time.Time{}, 0, nil
	}
	return r.At, r.Last, err
}

// moment returns the input, besides the view, of the steps of a prompt's policy.
func (s *Store) moment(ctx context.Context, org db.Org, p Prompt) (m policy.Moment, err error) {
	m = policy.Moment{Now: s.now(), Settings: p.settings, Notes: p.system.working, Anthropic: p.format == Anthropic}
	m.Whole = func(clip string) string {
		text, err := s.Recall.LongResult(ctx, org, p.Agent.ID, clip)
		if err != nil { // its beginning, which the log has, will do
			return ""
		}
		return text
	}
	if m.Skills, err = s.loadedSkills(ctx, org, p); err != nil || len(p.policy.Steps) == 0 {
		return m, err
	}
	if m.Touched, m.Sent, err = s.handedOut(ctx, org, p.Conversation); err != nil {
		return m, err
	}
	m.Busy, err = db.One[bool](ctx, s.DB, `
		SELECT EXISTS (
			SELECT 1 FROM children WHERE org = $1 AND parent_conversation = $2 AND status = 'working'
		)`, org, p.Conversation.Key)
	if err != nil {
		return m, err
	}
	m.Busy = m.Busy || p.Conversation.HeldUntil != nil && m.Now.Before(*p.Conversation.HeldUntil)
	m.Noted, err = db.One[int](ctx, s.DB, `
		SELECT coalesce(max(position) - 1, 0) FROM flushes
		WHERE org = $1 AND conversation_key = $2 AND kind = 'checkpoint' AND status = 'done'`, org, p.Conversation.Key)
	return m, err
}

// Hold delays compactions of a conversation until a plan ends, for d at most; 0 ends the delay.
func (s *Store) Hold(ctx context.Context, org db.Org, c recall.Conversation, d time.Duration) (
	recall.Conversation, error) {
	var until *time.Time
	if d > 0 {
		until = new(s.now().Add(d))
	}
	if err := s.Recall.Hold(ctx, org, c.ID, until); err != nil {
		return c, err
	}
	c.HeldUntil = until
	return c, nil
}

// planned returns the task with the plan of the prompt's policy, if the policy has steps or skills were loaded.
func (p Prompt) planned(t compaction.Task, at policy.Moment) compaction.Task {
	if len(p.policy.Steps) > 0 || at.Skills != nil {
		t.Plan = func(v clip.View) (plan.Plan, error) { return p.policy.PlanAndRestore(v, at) }
	}
	if len(p.policy.Steps) > 0 {
		t.Policy = p.policy.Name()
	}
	return t
}

// namesMode reports whether compaction settings choose a mode instead of a policy.
func namesMode(settings []byte) bool {
	var of struct {
		Mode   *string         `json:"mode"`
		Policy json.RawMessage `json:"policy"`
	}
	return json.Unmarshal(settings, &of) == nil && of.Mode != nil && of.Policy == nil
}

// PolicyInForce returns an agent's policy in a conversation, and which place set each value.
func (s *Store) PolicyInForce(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (policy.Effective,
	error) {
	layers, err := s.layers(ctx, org, a.in(c), nil)
	if err != nil {
		return policy.Effective{}, err
	}
	return policy.Layered(layers...)
}
