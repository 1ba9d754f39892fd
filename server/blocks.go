package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/block"
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

func blockOf(b block.Block) Block {
	return Block{Block: b, IsTemplate: b.Template.IsTemplate, TemplateName: b.Template.Name}
}

func blocksOf(list []block.Block) []Block {
	blocks := make([]Block, len(list))
	for i, b := range list {
		blocks[i] = blockOf(b)
	}
	return blocks
}

// OfBlock is the path of a block.
type OfBlock struct {
	BlockID rest.BlockID `path:"block_id"`
}

// AgentBlock is the path of a block as an agent has it, by its label.
type AgentBlock struct {
	rest.OfAgent
	Label string `path:"block_label"`
}

// CreateBlock is what a block is created from.
type CreateBlock struct {
	Label        string                `json:"label" doc:"1 to 50 letters, digits, '_', '-' and '/'."`
	Value        rest.Opt[string]      `json:"value,omitzero"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Limit        rest.Opt[int]         `json:"limit,omitzero" minimum:"1" doc:"Of the value, in characters; 100,000 if absent. It is enforced."`
	ReadOnly     rest.Opt[bool]        `json:"read_only,omitzero" doc:"The agent's tools cannot change it."`
	Hidden       rest.Opt[bool]        `json:"hidden,omitzero"`
	Tags         rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
	IsTemplate   rest.Opt[bool]        `json:"is_template,omitzero"`
	TemplateName rest.Opt[string]      `json:"template_name,omitzero"`
}

// usual are the descriptions of blocks that are created without one (Letta's labels).
var usual = map[string]string{
	"human": "The human block: Stores key details about the person you are conversing with, allowing for more personalized and friend-like conversation.",
	"persona": "The persona block: Stores details about your current persona, guiding how you behave and respond. This helps you to maintain " +
		"consistency and personality in your interactions.",
}

func (c CreateBlock) new() block.New {
	n := block.New{Label: c.Label, Value: c.Value.Value, Description: c.Description.Pointer(), Limit: c.Limit.Value, ReadOnly: c.ReadOnly.Value,
		Hidden: c.Hidden.Value, Tags: c.Tags.Value, Metadata: json.RawMessage(c.Metadata.Value),
		Template: block.Template{IsTemplate: c.IsTemplate.Value, Name: c.TemplateName.Pointer()}}
	if text, ok := usual[c.Label]; ok && n.Description == nil {
		n.Description = &text
	}
	return n
}

func newBlocks(list []CreateBlock) []block.New {
	all := make([]block.New, len(list))
	for i, c := range list {
		all[i] = c.new()
	}
	return all
}

// UpdateBlock changes the fields that it has; null leaves one alone.
type UpdateBlock struct {
	Label       rest.Opt[string]      `json:"label,omitzero"`
	Value       rest.Opt[string]      `json:"value,omitzero"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Limit       rest.Opt[int]         `json:"limit,omitzero" minimum:"1"`
	ReadOnly    rest.Opt[bool]        `json:"read_only,omitzero"`
	Hidden      rest.Opt[bool]        `json:"hidden,omitzero"`
	Tags        rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Precondition
}

// Precondition is what a change requires of the block as it is: 409 with the block otherwise.
type Precondition struct {
	ExpectedVersion rest.Opt[int]    `json:"expected_version,omitzero" doc:"The block's version; the header If-Match says the same."`
	ExpectedSHA256  rest.Opt[string] `json:"expected_sha256,omitzero" doc:"The hash of the block's value, in hexadecimal digits."`
}

// IfMatch is the header of a precondition.
type IfMatch struct {
	Version string `header:"If-Match" doc:"The version that the block must have, in quotes or without, or *."`
}

func (p Precondition) expected(header IfMatch) (block.Expected, error) {
	x := block.Expected{Version: p.ExpectedVersion.Value, SHA256: strings.ToLower(p.ExpectedSHA256.Value)}
	text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(header.Version), "W/"), `"`)
	if text == "" || text == "*" {
		return x, nil
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return x, db.Invalid("If-Match is %q; it must be a version of the block, such as \"3\"", header.Version)
	}
	x.Version = version
	return x, nil
}

func (u UpdateBlock) update() block.Update {
	return block.Update{Label: u.Label.Pointer(), Value: u.Value.Pointer(), Description: u.Description.Pointer(), Limit: u.Limit.Pointer(),
		ReadOnly: u.ReadOnly.Pointer(), Hidden: u.Hidden.Pointer(), Tags: u.Tags.Value, Metadata: json.RawMessage(u.Metadata.Value)}
}

// BlockFilter narrows a list of blocks.
type BlockFilter struct {
	Label         string        `query:"label" doc:"The exact label."`
	Name          string        `query:"name" doc:"The exact name of a template."`
	TemplatesOnly bool          `query:"templates_only" doc:"Templates, instead of what is none."`
	Tags          []string      `query:"tags,explode"`
	MatchAllTags  bool          `query:"match_all_tags"`
	LabelSearch   string        `query:"label_search" doc:"Part of the label, in any case."`
	ValueSearch   string        `query:"value_search" doc:"Part of the value, in any case."`
	AboutSearch   string        `query:"description_search" doc:"Part of the description, in any case."`
	Hidden        bool          `query:"show_hidden_blocks"`
	AgentsMore    rest.Opt[int] `query:"connected_to_agents_count_gt"`
	AgentsFewer   rest.Opt[int] `query:"connected_to_agents_count_lt"`
	Agents        []int         `query:"connected_to_agents_count_eq,explode"`
}

func (f BlockFilter) filter() block.Filter {
	return block.Filter{Label: f.Label, LabelContains: f.LabelSearch, ValueContains: f.ValueSearch, DescriptContains: f.AboutSearch,
		TemplateName: f.Name, Templates: &f.TemplatesOnly, Tags: f.Tags, AllTags: f.MatchAllTags, Hidden: f.Hidden,
		AgentsMore: f.AgentsMore.Pointer(), AgentsFewer: f.AgentsFewer.Pointer(), Agents: f.Agents}
}

func (s *Server) blockRoutes(a *rest.API) {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	rest.Route(a, post, "/v1/blocks", "Create a block", s.createBlock)
	rest.Route(a, get, "/v1/blocks", "List blocks", s.listBlocks)
	rest.Route(a, get, "/v1/blocks/count", "Count blocks", s.countBlocks)
	rest.Route(a, get, "/v1/blocks/{block_id}", "Get a block", s.getBlock)
	rest.Route(a, patch, "/v1/blocks/{block_id}", "Change a block", s.updateBlock)
	rest.Route(a, del, "/v1/blocks/{block_id}", "Delete a block", s.deleteBlock)
	rest.Route(a, get, "/v1/blocks/{block_id}/agents", "List the agents that have a block", s.blockAgents)
	rest.Route(a, get, "/v1/blocks/{block_id}/versions", "List what a block was", s.blockVersions)
	rest.Route(a, get, "/v1/blocks/{block_id}/versions/{version}", "Get what a block was", s.blockVersion)
	rest.Route(a, post, "/v1/blocks/{block_id}/versions/{version}/restore", "Make a block what it was", s.restoreBlock)
	rest.Route(a, get, "/v1/blocks/{block_id}/diff", "Compare two versions of a block", s.blockDiff)

	const core = "/v1/agents/{agent_id}/core-memory/blocks"
	rest.Route(a, get, core, "List an agent's blocks", s.agentBlocks)
	rest.Route(a, get, core+"/{block_label}", "Get an agent's block by its label", s.agentBlock)
	rest.Route(a, patch, core+"/{block_label}", "Change an agent's block", s.updateAgentBlock)
	rest.Route(a, patch, core+"/attach/{block_id}", "Attach a block to an agent", s.attachBlock)
	rest.Route(a, patch, core+"/detach/{block_id}", "Detach a block from an agent", s.detachBlock)
}

func (s *Server) createBlock(ctx context.Context, in *struct{ Body CreateBlock }) (Block, error) {
	b, err := s.Blocks.Create(ctx, rest.Org(ctx), block.OperatorAuthor, in.Body.new())
	return blockOf(b), err
}

func (s *Server) getBlock(ctx context.Context, in *OfBlock) (Block, error) {
	b, err := s.Blocks.Block(ctx, rest.Org(ctx), string(in.BlockID))
	return blockOf(b), err
}

func (s *Server) updateBlock(ctx context.Context, in *struct {
	OfBlock
	IfMatch
	Body UpdateBlock
}) (Block, error) {
	return s.changeBlock(ctx, string(in.BlockID), in.IfMatch, in.Body)
}

func (s *Server) changeBlock(ctx context.Context, id string, header IfMatch, body UpdateBlock) (Block, error) {
	x, err := body.expected(header)
	if err != nil {
		return Block{}, err
	}
	b, err := s.Blocks.Update(ctx, rest.Org(ctx), block.OperatorAuthor, id, x, body.update())
	return blockOf(b), withCurrent(err)
}

// withCurrent shows the block as it is in the error of a change that expected something else.
func withCurrent(err error) error {
	if mismatch, ok := errors.AsType[*block.MismatchError](err); ok {
		return rest.Conflict(mismatch.Error(), blockOf(mismatch.Current))
	}
	return err
}

func (s *Server) listBlocks(ctx context.Context, in *struct {
	BlockFilter
	rest.Paging
}) ([]Block, error) {
	list, err := s.Blocks.List(ctx, rest.Org(ctx), in.filter(), in.Page(50, rest.OldestFirst))
	return blocksOf(list), err
}

func (s *Server) countBlocks(ctx context.Context, in *BlockFilter) (int, error) {
	return s.Blocks.Count(ctx, rest.Org(ctx), in.filter())
}

func (s *Server) deleteBlock(ctx context.Context, in *OfBlock) (rest.Null, error) {
	return rest.Null{}, s.Blocks.Delete(ctx, rest.Org(ctx), string(in.BlockID))
}

func (s *Server) blockAgents(ctx context.Context, in *struct {
	OfBlock
	Included
	rest.Paging
}) ([]AgentState, error) {
	ids, err := s.Blocks.Agents(ctx, rest.Org(ctx), string(in.BlockID))
	if err != nil {
		return nil, err
	}
	return s.statesOf(ctx, rest.Paged(ids, in.Page(50, rest.NewestFirst), func(id string) string { return id }), in.fileBlocks())
}

// statesOf are the states of agents, in the order of their ids.
func (s *Server) statesOf(ctx context.Context, ids []string, withFiles bool) ([]AgentState, error) {
	states := []AgentState{}
	for _, id := range ids {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), id)
		if err != nil {
			return nil, err
		}
		state, err := s.state(ctx, rest.Org(ctx), a, withFiles)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

func (s *Server) blockVersions(ctx context.Context, in *struct {
	OfBlock
	Before int `query:"before" minimum:"1" doc:"Versions before this one."`
	Limit  int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]block.Version, error) {
	return s.Blocks.Versions(ctx, rest.Org(ctx), string(in.BlockID), in.Before, in.Limit)
}

// OfVersion is the path of a version of a block.
type OfVersion struct {
	OfBlock
	Version int `path:"version" minimum:"1"`
}

func (s *Server) blockVersion(ctx context.Context, in *OfVersion) (block.Version, error) {
	return s.Blocks.Version(ctx, rest.Org(ctx), string(in.BlockID), in.Version)
}

// BlockDiff is how a block's value changed between two versions.
type BlockDiff struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Diff string `json:"diff" doc:"A unified diff; empty where the value is the same."`
}

func (s *Server) blockDiff(ctx context.Context, in *struct {
	OfBlock
	From int `query:"from" minimum:"1" required:"true"`
	To   int `query:"to" minimum:"1" required:"true"`
}) (BlockDiff, error) {
	text, err := s.Blocks.Diff(ctx, rest.Org(ctx), string(in.BlockID), in.From, in.To)
	return BlockDiff{From: in.From, To: in.To, Diff: text}, err
}

func (s *Server) restoreBlock(ctx context.Context, in *struct {
	OfVersion
	IfMatch
	Body Precondition
}) (Block, error) {
	x, err := in.Body.expected(in.IfMatch)
	if err != nil {
		return Block{}, err
	}
	b, err := s.Blocks.Restore(ctx, rest.Org(ctx), block.OperatorAuthor, string(in.BlockID), x, in.OfVersion.Version)
	return blockOf(b), withCurrent(err)
}

func (s *Server) agentBlocks(ctx context.Context, in *struct {
	rest.OfAgent
	rest.Paging
}) ([]Block, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return nil, err
	}
	list, err := s.Blocks.OfAgent(ctx, rest.Org(ctx), string(in.AgentID))
	return blocksOf(rest.Paged(list, in.Page(100, rest.NewestFirst), func(b block.Block) string { return b.ID })), err
}

func (s *Server) agentBlock(ctx context.Context, in *AgentBlock) (Block, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return Block{}, err
	}
	b, err := s.Blocks.Labelled(ctx, rest.Org(ctx), string(in.AgentID), in.Label)
	return blockOf(b), err
}

func (s *Server) updateAgentBlock(ctx context.Context, in *struct {
	AgentBlock
	IfMatch
	Body UpdateBlock
}) (Block, error) {
	b, err := s.agentBlock(ctx, &in.AgentBlock)
	if err != nil {
		return Block{}, err
	}
	return s.changeBlock(ctx, b.ID, in.IfMatch, in.Body)
}

// BlockOfAgent is the path of a block as it is attached and detached.
type BlockOfAgent struct {
	rest.OfAgent
	OfBlock
}

func (s *Server) attachBlock(ctx context.Context, in *BlockOfAgent) (AgentState, error) {
	if err := s.Blocks.Attach(ctx, rest.Org(ctx), string(in.AgentID), string(in.BlockID)); err != nil {
		return AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}

func (s *Server) detachBlock(ctx context.Context, in *BlockOfAgent) (AgentState, error) {
	if err := s.Blocks.Detach(ctx, rest.Org(ctx), string(in.AgentID), string(in.BlockID)); err != nil {
		return AgentState{}, err
	}
	return s.getAgent(ctx, &in.OfAgent)
}
