package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) policyRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/policies",
		"list_policies: List the policies that have a name, and the steps that a policy can have.", s.policies, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/policies/{policy_name}",
		"get_policy: Get a policy by its name, with its steps and their settings.", s.policyNamed, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/policy",
		"get_agent_policy: Get the policy in force of an agent's conversation. Each setting says which place set it.",
		s.agentPolicy, rest.Own)
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/policies/preview",
		"preview_policies: Compare what policies would do to a prompt. Nothing is stored, and no model is asked.",
		s.previewPolicies, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/stats",
		"get_agent_stats: Get what an agent's conversations hold, how their prompts grow, and what is expanded.",
		s.agentStats, rest.Own)
	rest.Get(a.For(rest.Admin), "/v1/admin/policy",
		"get_organization_policy: Get the policy of the organization's agents that set none of their own.",
		s.organizationPolicy, rest.Own)
	rest.Put(a.For(rest.Admin), "/v1/admin/policy",
		"update_organization_policy: Set the policy of the organization's agents. Null takes it back.",
		s.setOrganizationPolicy, rest.Own)
	rest.Get(a.For(rest.Admin), "/v1/admin/policy/changes",
		"list_policy_changes: List who changed policies, of the organization, of agents and of conversations.",
		s.policyChanges, rest.Own)
	const ofServer = "/v1/admin/policy/server"
	rest.Get(a.For(rest.Operator), ofServer,
		"get_server_policy: Get the policy of the agents of all organizations. Only the operator may.", s.serverPolicy,
		rest.Own)
	rest.Put(a.For(rest.Operator), ofServer,
		"update_server_policy: Set the policy of the agents of all organizations, before LOCI_POLICY. Null takes it back. "+
			"Only the operator may.", s.setServerPolicy, rest.Own)
	rest.Get(a.For(rest.Operator), ofServer+"/changes",
		"list_server_policy_changes: List who changed the policy of the server. Only the operator may.",
		s.serverPolicyChanges, rest.Own)
}

// PolicyStep is a step of a policy, or a kind of step with its default settings.
type PolicyStep struct {
	Step        string          `json:"step"`
	Stage       string          `json:"stage" doc:"When." enum:"enter,normalize,prune,pressure,compact,restore,truncate"`
	Source      string          `json:"source" doc:"The harness that has it."`
	Description string          `json:"description"`
	Settings    []PolicySetting `json:"settings"`
}

// PolicySetting is a setting of a step.
type PolicySetting struct {
	policy.Setting
	Origin string `json:"origin,omitempty" doc:"The place that set it, of a policy in force; absent: the preset's own."`
}

// NamedPolicy is a preset.
type NamedPolicy struct {
	Name        string       `json:"name"`
	Title       string       `json:"title"`
	Source      string       `json:"source"`
	Description string       `json:"description"`
	Steps       []PolicyStep `json:"steps"`
}

// Policies are all presets and all kinds of steps.
type Policies struct {
	Policies []NamedPolicy `json:"policies"`
	Steps    []PolicyStep  `json:"steps" doc:"That a policy can have, with their defaults."`
}

// stepOf returns a step with its settings. origin returns the place that set a setting; it may be nil.
func stepOf(step policy.Step, origin func(setting string) string) PolicyStep {
	m := policy.Describe(step)
	out := PolicyStep{Step: m.Name, Stage: m.Stage.String(), Source: m.Source, Description: m.Words,
		Settings: []PolicySetting{}}
	for _, setting := range policy.Settings(step) {
		shown := PolicySetting{Setting: setting}
		if origin != nil {
			shown.Origin = origin(setting.Name)
		}
		out.Settings = append(out.Settings, shown)
	}
	return out
}

func named(p policy.PresetInfo) NamedPolicy {
	out := NamedPolicy{Name: p.Name, Title: p.Title, Source: p.Source, Description: p.Description, Steps: []PolicyStep{}}
	for _, step := range p.Policy().Steps {
		out.Steps = append(out.Steps, stepOf(step, nil))
	}
	return out
}

func (s *Server) policies(context.Context, *struct{}) (Policies, error) {
	return Policies{Policies: rest.Each(policy.Presets(), named),
		Steps: rest.Each(policy.Mechanisms(), func(m policy.Mechanism) PolicyStep { return stepOf(m.New(), nil) })}, nil
}

func (s *Server) policyNamed(_ context.Context, input *struct {
	Name string `path:"policy_name"`
}) (NamedPolicy, error) {
	for _, p := range policy.Presets() {
		if p.Name == input.Name {
			return named(p), nil
		}
	}
	return NamedPolicy{}, db.NotFound("There is no policy %q; GET /v1/policies lists them", db.Short(input.Name))
}

// AgentPolicy is the policy in force in a conversation.
type AgentPolicy struct {
	Policy string       `json:"policy" doc:"Its name: of a preset, changed or not, or custom."`
	SetBy  string       `json:"set_by" doc:"The place that names the preset or lists the steps; empty if none does."`
	Steps  []PolicyStep `json:"steps"`

	LeftOut []LeftOutStep `json:"left_out" doc:"Steps of the preset, or of farther places, that are left out."`
}

// LeftOutStep is a step that one of the places removed from the policy.
type LeftOutStep struct {
	Step  string `json:"step" doc:"Its name." example:"snip"`
	SetBy string `json:"set_by" doc:"The place that left it out."`
}

func (s *Server) agentPolicy(ctx context.Context, input *struct {
	rest.OfAgent
	Conversation rest.ConversationID `query:"conversation_id" doc:"The default one if absent."`
}) (AgentPolicy, error) {
	conversation, err := input.Conversation.OfAgent(string(input.AgentID))
	if err != nil {
		return AgentPolicy{}, err
	}
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(input.AgentID), conversation)
	if err != nil {
		return AgentPolicy{}, err
	}
	owner, err := s.Agents.Agent(ctx, rest.Org(ctx), c.AgentID)
	if err != nil {
		return AgentPolicy{}, err
	}
	e, err := s.Agents.PolicyInForce(ctx, rest.Org(ctx), owner, c)
	if err != nil {
		return AgentPolicy{}, err
	}
	return shownPolicy(e), nil
}

func shownPolicy(e policy.Effective) AgentPolicy {
	out := AgentPolicy{Policy: e.Name(), SetBy: e.SetBy, Steps: []PolicyStep{}, LeftOut: []LeftOutStep{}}
	for _, name := range slices.Sorted(maps.Keys(e.LeftOut)) {
		out.LeftOut = append(out.LeftOut, LeftOutStep{name, e.LeftOut[name]})
	}
	steps := e.Steps
	if preset, err := policy.Preset(policy.Default); e.SetBy == "" && len(steps) == 0 && err == nil {
		steps = preset.Steps
	}
	for _, step := range steps {
		name := policy.NameOf(step)
		out.Steps = append(out.Steps, stepOf(step, func(setting string) string { return e.Origin(name, setting) }))
	}
	return out
}

func (s *Server) agentStats(ctx context.Context, input *struct {
	rest.OfAgent
	Sessions int `query:"sessions" minimum:"1" maximum:"100" default:"15" doc:"The newest conversations."`
}) (agent.Stats, error) {
	return s.Agents.Stats(ctx, rest.Org(ctx), string(input.AgentID), input.Sessions)
}

// AnyPolicy is a policy as a caller wrote it.
type AnyPolicy json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (p *AnyPolicy) UnmarshalJSON(raw []byte) error {
	*p = append(AnyPolicy(nil), raw...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (p AnyPolicy) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("null"), nil
	}
	return p, nil
}

// Schema implements huma.SchemaProvider.
func (AnyPolicy) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "The name of a policy, or an object: {preset, steps}, whose settings change those " +
		"of the preset; or {steps}, a list, or an object that changes the policy of the farther places.",
		Examples: []any{"letta"}, Extensions: letta.AnyPolicyType}
}

// PolicyPreviews is a request to compare policies.
type PolicyPreviews struct {
	Policies     []AnyPolicy            `json:"policies" minItems:"1" maxItems:"20" doc:"To compare" example:"[\"letta\"]"`
	Conversation rest.Opt[string]       `json:"conversation_id,omitzero" doc:"The default one if absent."`
	AtSeq        rest.Opt[int64]        `json:"at_seq,omitzero" minimum:"1" doc:"The newest event to use; all if absent."`
	Prices       rest.Opt[agent.Prices] `json:"prices,omitzero" doc:"Of a provider; absent ones are 3, 0.1 and 1.25."`
}

func (s *Server) previewPolicies(ctx context.Context, input *struct {
	rest.OfAgent
	Body PolicyPreviews
}) ([]agent.PolicyPreview, error) {
	conversation, err := rest.ConversationID(input.Body.Conversation.Value).OfAgent(string(input.AgentID))
	if err != nil {
		return nil, err
	}
	if len(input.Body.Policies) == 0 {
		return nil, db.Invalid("policies is empty; name from 1 to 20 policies to compare")
	}
	prices := agent.DefaultPrices()
	if input.Body.Prices.Set && !input.Body.Prices.Null {
		prices = input.Body.Prices.Value
	}
	policies := make([]json.RawMessage, len(input.Body.Policies))
	for i, p := range input.Body.Policies {
		policies[i] = json.RawMessage(p)
	}
	target := agent.PolicyTarget{AtSeq: input.Body.AtSeq.Value,
		PromptTarget: agent.PromptTarget{AgentID: string(input.AgentID), Conversation: conversation}}
	all, err := s.Agents.PreviewPolicies(ctx, rest.Org(ctx), target, policies)
	for i := range all {
		all[i].Price(prices)
	}
	return all, err
}

// OrganizationPolicy is the policy that an organization set for its agents.
type OrganizationPolicy struct {
	Policy AnyPolicy `json:"policy" doc:"Null: none."`
}

func (s *Server) organizationPolicy(ctx context.Context, input *OfOrg) (OrganizationPolicy, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return OrganizationPolicy{}, err
	}
	raw, err := s.Agents.OrganizationPolicy(ctx, org)
	return OrganizationPolicy{AnyPolicy(raw)}, err
}

func (s *Server) setOrganizationPolicy(ctx context.Context, input *struct {
	OfOrg
	Body OrganizationPolicy
}) (OrganizationPolicy, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return OrganizationPolicy{}, err
	}
	raw := json.RawMessage(input.Body.Policy)
	if err := s.Agents.SetOrganizationPolicy(ctx, org, raw, rest.Caller(ctx).ID); err != nil {
		return OrganizationPolicy{}, err
	}
	return s.organizationPolicy(ctx, &input.OfOrg)
}

// PolicyChange is a change of a policy, with the policy as it was written.
type PolicyChange struct {
	agent.PolicyChange
	Policy AnyPolicy `json:"policy" doc:"What was set; null took it back."`
}

func shownChanges(list []agent.PolicyChange, err error) ([]PolicyChange, error) {
	return rest.Each(list, func(c agent.PolicyChange) PolicyChange { return PolicyChange{c, AnyPolicy(c.Policy)} }), err
}

func (s *Server) policyChanges(ctx context.Context, input *struct {
	rest.Paging
	OfOrg
}) ([]PolicyChange, error) {
	org, err := s.orgNamed(ctx, input.OrgID)
	if err != nil {
		return nil, err
	}
	return shownChanges(s.Agents.PolicyChanges(ctx, org, input.Page(50, rest.NewestFirst)))
}

// PolicyOfServer is the policy for the agents of all organizations.
type PolicyOfServer struct {
	Policy AnyPolicy `json:"policy" doc:"Null: none, and that of the server's settings holds."`
}

func (s *Server) serverPolicy(ctx context.Context, _ *struct{}) (PolicyOfServer, error) {
	raw, err := s.Agents.ServerPolicy(ctx)
	return PolicyOfServer{AnyPolicy(raw)}, err
}

func (s *Server) setServerPolicy(ctx context.Context, input *struct{ Body PolicyOfServer }) (PolicyOfServer, error) {
	if err := s.Agents.SetServerPolicy(ctx, json.RawMessage(input.Body.Policy), rest.Caller(ctx).ID); err != nil {
		return PolicyOfServer{}, err
	}
	return s.serverPolicy(ctx, nil)
}

func (s *Server) serverPolicyChanges(ctx context.Context, input *struct{ rest.Paging }) ([]PolicyChange, error) {
	return shownChanges(s.Agents.ServerPolicyChanges(ctx, input.Page(50, rest.NewestFirst)))
}
