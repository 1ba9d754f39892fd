package lettadb

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/agent"
)

// identity is an identity in Letta's database.
type identity struct {
	row
	Key        string `json:"identifier_key"`
	Name       string
	Type       string `json:"identity_type"`
	Properties json.RawMessage
}

// link is a row of a table that connects two others.
type link struct {
	Agent string `json:"agent_id"`
	Block string `json:"block_id"`
	Of    string
}

func (link) deleted() bool { return false }

// identities imports the organization's identities, with their agents and blocks.
func (r *run) identities(ctx context.Context) error {
	all, err := list[identity](ctx, r, "identities", `
		SELECT * FROM identities WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, i := range all {
		agents, err := list[link](ctx, r, "identities_agents", `
			SELECT * FROM identities_agents WHERE identity_id = $1 ORDER BY agent_id`, i.ID)
		if err != nil {
			return err
		}
		blocks, err := list[link](ctx, r, "identities_blocks", `
			SELECT * FROM identities_blocks WHERE identity_id = $1 ORDER BY block_id`, i.ID)
		if err != nil {
			return err
		}
		_, err = r.Agents.Identity(ctx, r.org, i.ID)
		if missing, err := absent(err); err != nil {
			return err
		} else if !missing {
			r.report.stored("identities", false)
			r.report.table("identities_agents").Present += len(agents)
			r.report.table("identities_blocks").Present += len(blocks)
			continue
		}
		err = r.item(ctx, "identities", i.ID, func(txRun *run) error { return txRun.identity(ctx, i, agents, blocks) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) identity(ctx context.Context, i identity, agents, blocks []link) error {
	restored := agent.PortableIdentity{CreatedAt: i.created(), UpdatedAt: i.updated(), Identity: agent.Identity{ID: i.ID,
		IdentifierKey: clipped(plainName(i.Key, i.ID), 500), Name: clipped(plainName(i.Name, i.ID), 500), Type: i.Type,
		Properties: json.RawMessage(`[]`)}}
	if !slices.Contains([]string{"org", "user", "other"}, i.Type) {
		restored.Type = "other"
	}
	if properties := array(i.Properties); properties != nil {
		restored.Properties = properties
	}
	for _, l := range agents {
		_, err := r.Agents.Agent(ctx, r.org, l.Agent)
		if found, err := r.linked("identities_agents", l.Agent, err); err != nil {
			return err
		} else if found {
			restored.AgentIDs = append(restored.AgentIDs, l.Agent)
		}
	}
	for _, l := range blocks {
		_, err := r.Agents.Blocks.Block(ctx, r.org, l.Block)
		if found, err := r.linked("identities_blocks", l.Block, err); err != nil {
			return err
		} else if found {
			restored.BlockIDs = append(restored.BlockIDs, l.Block)
		}
	}
	present, err := r.Agents.RestoreIdentity(ctx, r.org, restored)
	if err == nil && present != nil {
		r.report.note("identity %s: the organization has %s with its identifier key, which gets its agents and blocks.", i.ID,
			present.ID)
	}
	return err
}

// linked counts a row that links something to an object. lookup is the error of looking the object up.
func (r *run) linked(table, id string, lookup error) (found bool, err error) {
	missing, err := absent(lookup)
	if err != nil {
		return false, err
	}
	if missing {
		r.report.leftOut(table, "%s: the row of %s is left out, because it is not imported.", table, id)
		return false, nil
	}
	r.report.stored(table, true)
	return true, nil
}
