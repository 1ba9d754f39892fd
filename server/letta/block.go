package letta

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/server/rest"
)

// Block is a core memory block in Letta's shape.
type Block struct {
	block.Block
	IsTemplate          bool      `json:"is_template"`
	TemplateName        *string   `json:"template_name"`
	PreserveOnMigration bool      `json:"preserve_on_migration"`
	ProjectID           rest.Null `json:"project_id"`
	BaseTemplateID      rest.Null `json:"base_template_id"`
	TemplateID          rest.Null `json:"template_id"`
	DeploymentID        rest.Null `json:"deployment_id"`
	EntityID            rest.Null `json:"entity_id"`
	CreatedByID         rest.Null `json:"created_by_id"`
	LastUpdatedByID     rest.Null `json:"last_updated_by_id"`
}

// BlockOf returns a block in Letta's shape.
func BlockOf(b block.Block) Block {
	return Block{Block: b, IsTemplate: b.Template.IsTemplate, TemplateName: b.Template.Name}
}

// CreateBlock is a request to create a block.
type CreateBlock struct {
	Label        string                `json:"label" doc:"1 to 50 letters, digits, '_', '-' and '/'."`
	Value        rest.Opt[string]      `json:"value,omitzero"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Limit        rest.Opt[int]         `json:"limit,omitzero" minimum:"0" doc:"In characters; 100,000 if absent or 0."`
	ReadOnly     rest.Opt[bool]        `json:"read_only,omitzero" doc:"The agent's tools cannot change it."`
	Hidden       rest.Opt[bool]        `json:"hidden,omitzero"`
	Tags         rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
	IsTemplate   rest.Opt[bool]        `json:"is_template,omitzero"`
	TemplateName rest.Opt[string]      `json:"template_name,omitzero"`
}

// defaultDescriptions are the descriptions of blocks that are created without one, by label. The texts are Letta's.
var defaultDescriptions = map[string]string{
	"human": "The human block: Stores key details about the person you are conversing with, allowing for more " +
		"personalized and friend-like conversation.",
	"persona": "The persona block: Stores details about your current persona, guiding how you behave and respond. " +
		"This helps you to maintain consistency and personality in your interactions.",
}

// New returns the block to create.
func (c CreateBlock) New() block.New {
	n := block.New{Label: c.Label, Value: c.Value.Value, Description: c.Description.Pointer(), Limit: c.Limit.Value,
		ReadOnly: c.ReadOnly.Value, Hidden: c.Hidden.Value, Tags: c.Tags.Value, Metadata: json.RawMessage(c.Metadata.Value),
		Template: block.Template{IsTemplate: c.IsTemplate.Value, Name: c.TemplateName.Pointer()}}
	if text, ok := defaultDescriptions[c.Label]; ok && n.Description == nil {
		n.Description = &text
	}
	return n
}

// UpdateBlock changes the fields that are present and not null.
type UpdateBlock struct {
	Label       rest.Opt[string]      `json:"label,omitzero"`
	Value       rest.Opt[string]      `json:"value,omitzero"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Limit       rest.Opt[int]         `json:"limit,omitzero" minimum:"0" doc:"0 is 100,000."`
	ReadOnly    rest.Opt[bool]        `json:"read_only,omitzero"`
	Hidden      rest.Opt[bool]        `json:"hidden,omitzero"`
	Tags        rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Precondition
}

// Precondition is the state that a change expects the block to have. If the block differs, the answer is a 409 with the
// block.
type Precondition struct {
	ExpectedVersion rest.Opt[int]    `json:"expected_version,omitzero" doc:"The block's version, as in If-Match."`
	ExpectedSHA256  rest.Opt[string] `json:"expected_sha256,omitzero" doc:"Of the block's value, in hexadecimal digits."`
}

// IfMatch is the header that holds a precondition.
type IfMatch struct {
	Version string `header:"If-Match" doc:"The version that the block must have, in quotes or without, or *."`
}

// CheckSHA256 returns ErrInvalid for a hash that is present but empty, because no text has an empty hash.
func CheckSHA256(hash rest.Opt[string]) error {
	if hash.Pointer() != nil && hash.Value == "" {
		return db.Invalid("expected_sha256 is empty; give the hash of the present text, or leave it out")
	}
	return nil
}

// Expected combines the preconditions of the body and the header. ErrInvalid if the header is no version or the hash is
// empty.
func (p Precondition) Expected(header IfMatch) (block.Expected, error) {
	if err := CheckSHA256(p.ExpectedSHA256); err != nil {
		return block.Expected{}, err
	}
	x := block.Expected{Version: p.ExpectedVersion.Pointer(), SHA256: strings.ToLower(p.ExpectedSHA256.Value)}
	version, err := header.version()
	if version != nil {
		x.Version = version
	}
	return x, err
}

// version returns the version that the header expects; nil accepts any. ErrInvalid if the header is no version.
func (h IfMatch) version() (*int, error) {
	text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(h.Version), "W/"), `"`)
	if text == "" || text == "*" {
		return nil, nil //nolint:nilnil // nil accepts any version
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 0 {
		return nil, db.Invalid("If-Match is %q; it must be the version that is expected, such as \"3\"", h.Version)
	}
	return &version, nil
}

// Update returns the change.
func (u UpdateBlock) Update() block.Update {
	if u.Limit.Set && !u.Limit.Null {
		u.Limit.Value = cmp.Or(u.Limit.Value, block.DefaultLimit)
	}
	return block.Update{Label: u.Label.Pointer(), Value: u.Value.Pointer(), Description: u.Description.Pointer(),
		Limit: u.Limit.Pointer(), ReadOnly: u.ReadOnly.Pointer(), Hidden: u.Hidden.Pointer(), Tags: u.Tags.Value,
		Metadata: json.RawMessage(u.Metadata.Value)}
}

// BlockFilter narrows a list of blocks.
type BlockFilter struct {
	Label         string        `query:"label" doc:"The exact label."`
	Name          string        `query:"name" doc:"The exact name of a template."`
	TemplatesOnly bool          `query:"templates_only" doc:"Only templates, instead of only other blocks."`
	Tags          []string      `query:"tags,explode"`
	MatchAllTags  bool          `query:"match_all_tags"`
	LabelSearch   string        `query:"label_search" doc:"Part of the label, in any case."`
	ValueSearch   string        `query:"value_search" doc:"Part of the value, in any case."`
	AboutSearch   string        `query:"description_search" doc:"Part of the description, in any case."`
	Hidden        bool          `query:"show_hidden_blocks"`
	AgentsMore    rest.Opt[int] `query:"connected_to_agents_count_gt"`
	AgentsFewer   rest.Opt[int] `query:"connected_to_agents_count_lt"`
	Agents        []int         `query:"connected_to_agents_count_eq,explode"`
	IdentityFilters
}

// Filter returns the store's filter.
func (f BlockFilter) Filter() block.Filter {
	return block.Filter{Label: f.Label, LabelContains: f.LabelSearch, ValueContains: f.ValueSearch,
		DescriptContains: f.AboutSearch, TemplateName: f.Name, Templates: &f.TemplatesOnly,
		Tags: f.Tags, AllTags: f.MatchAllTags, Hidden: f.Hidden,
		AgentsMore: f.AgentsMore.Pointer(), AgentsFewer: f.AgentsFewer.Pointer(), Agents: f.Agents,
		Identity: f.IdentityID, IdentifierKeys: f.IdentifierKeys}
}

// BlockDiff shows how a block's value changed between two versions.
type BlockDiff struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Diff string `json:"diff" doc:"A unified diff; empty where the value is the same."`
}
