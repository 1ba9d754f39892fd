package agentfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/server/rest"
)

// restore creates the agents of a full file, with everything in the file's lists.
func (i *imports) restore(ctx context.Context) error {
	i.agentIDs, i.ownBlocks, i.conversations = map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, step := range []func(context.Context) error{i.restoreAgents, i.restoreEvents, i.restoreBlocks,
		i.restoreArchives, i.restoreFolders, i.readKeptIDs, i.restoreConversations, i.restoreKept, i.restoreCompactions,
		i.restoreConsumers, i.restoreWorking, i.restoreTrees, i.restoreIdentities} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *imports) restoreAgents(ctx context.Context) error {
	check, err := i.references()
	if err != nil {
		return err
	}
	return i.agents(func(a agentOf) error {
		if err := check(a); err != nil {
			return err
		}
		if len(a.Blocks)+len(a.Messages) > 0 {
			return db.Invalid("%s: memory_blocks and initial_message_sequence must be empty in a full file", a.place)
		}
		id, err := i.ids.of("agent-", a.own.ID)
		if err != nil {
			return at(a.place, err)
		}
		i.agentIDs[a.own.ID] = id
		i.made.AgentIDs = append(i.made.AgentIDs, id)
		if err := i.Agents.RestoreAgent(ctx, i.org, agent.Restored{ID: id, New: a.New, LastRun: a.own.LastRun,
			CreatedAt: a.own.CreatedAt, UpdatedAt: a.own.UpdatedAt}); err != nil {
			return at(a.place, err)
		}
		return at(a.place, firstOf(i.restoreAttachments(ctx, id, a), i.restoreSubagents(ctx, id, a)))
	})
}

// references returns a check for agents: ErrInvalid if an agent names an object that is missing in Letta's lists of the
// file. A full file has the same objects in its own lists, and these are restored.
func (i *imports) references() (func(agentOf) error, error) {
	ids := map[string]map[string]string{}
	for _, list := range []string{listBlocks, listSources, listFiles} {
		ids[list] = map[string]string{}
		for it, err := range i.file.items(list) {
			if err != nil {
				return nil, err
			}
			var object struct{ ID string }
			if err := decode(it.place, it.raw, &object); err != nil {
				return nil, err
			}
			ids[list][object.ID] = object.ID
		}
	}
	return func(a agentOf) error {
		_, noBlock := known(ids[listBlocks], a.place+".block_ids", a.fields.BlockIDs)
		_, noSource := known(ids[listSources], a.place+".source_ids", append(a.fields.SourceIDs, a.fields.FolderIDs...))
		viewed := rest.Each(a.fields.Views, func(v fileView) string { return v.FileID })
		_, noFile := known(ids[listFiles], a.place+".files_agents", viewed)
		return firstOf(noBlock, noSource, noFile)
	}, nil
}

// restoreSubagents creates the definitions of an agent's sub-agents.
func (i *imports) restoreSubagents(ctx context.Context, agentID string, a agentOf) error {
	if a.own == nil {
		return nil
	}
	for n, d := range a.own.Subagents {
		restored := agent.SubagentDefinition{Name: d.Name, Description: d.Description, Given: d.Given}
		if i.file.own.Full {
			restored.CreatedAt, restored.UpdatedAt = d.CreatedAt, d.UpdatedAt
		}
		if err := i.Agents.RestoreSubagentDefinition(ctx, i.org, agentID, restored); err != nil {
			return fmt.Errorf("loci.agents: subagents[%d]: %w", n, err)
		}
	}
	return nil
}

// restoreAttachments attaches a restored agent's custom tools.
func (i *imports) restoreAttachments(ctx context.Context, agentID string, a agentOf) error {
	if len(a.own.Custom) != len(a.ToolIDs) {
		return db.Invalid("tool_ids and the agent's custom_tools in loci have different tools")
	}
	for _, t := range a.own.Custom {
		id := i.custom[t.Of]
		if !slices.Contains(a.ToolIDs, id) {
			return db.Invalid("tool_ids has no custom tool %q", db.Short(t.Of))
		}
		if err := i.Agents.RestoreAttachment(ctx, i.org, agentID, id, t.At); err != nil {
			return err
		}
	}
	return nil
}

func (i *imports) restoreBlocks(ctx context.Context) error {
	blocks := streamOf(i, listOwnBlocks, func(b *block.Portable) error {
		return firstOf(i.provenance(&b.AttachedBy), i.id("block-", &b.ID), i.ownerID(&b.AgentID))
	})
	defer blocks.stop()
	versions := streamOf(i, listVersions, func(v *block.PortableVersion) error {
		if agentID, ok := i.agentIDs[v.Author]; ok {
			v.Author = agentID
		}
		return firstOf(i.provenance(&v.Provenance), i.id("block-", &v.BlockID))
	})
	defer versions.stop()
	for b, err := range blocks.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Blocks.RestoreBlock(ctx, i.org, b); err != nil {
			return at(blocks.place, err)
		}
		i.ownBlocks[b.ID] = true
		for v, err := range versions.take(func(v block.PortableVersion) bool { return v.BlockID == b.ID }) {
			if err != nil {
				return err
			}
			if err := i.Agents.Blocks.RestoreVersion(ctx, i.org, v); err != nil {
				return at(versions.place, err)
			}
		}
		if err := i.Agents.Blocks.CheckVersions(ctx, i.org, b.ID); err != nil {
			return at(blocks.place, err)
		}
	}
	return versions.end()
}

// passagesAtOnce is how many passages are in memory at a time.
const passagesAtOnce = 250

func (i *imports) restoreArchives(ctx context.Context) error {
	archives := streamOf(i, listArchives, func(c *archival.PortableArchive) error {
		return firstOf(i.makers(&c.Makers), i.id("archive-", &c.ID), i.agentID(&c.AgentID))
	})
	defer archives.stop()
	passages := streamOf(i, listPassages, func(p *archival.Passage) error {
		if p.SupersededBy != nil {
			if err := i.id("passage-", p.SupersededBy); err != nil {
				return err
			}
		}
		return firstOf(i.provenance(&p.Provenance), i.id("passage-", &p.ID), i.id("archive-", &p.ArchiveID))
	})
	defer passages.stop()
	for c, err := range archives.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Archival.RestoreArchive(ctx, i.org, c); err != nil {
			return at(archives.place, err)
		}
		var page []archival.Passage
		var successions []db.Succession
		for p, err := range passages.take(func(p archival.Passage) bool { return p.ArchiveID == c.ID }) {
			if err != nil {
				return err
			}
			if p.SupersededBy != nil {
				successions = append(successions, db.Succession{Ended: p.ID, By: *p.SupersededBy})
			}
			if page = append(page, p); len(page) == passagesAtOnce {
				if err := i.Agents.Archival.RestorePassages(ctx, i.org, c.ID, page); err != nil {
					return at(passages.place, err)
				}
				page = page[:0]
			}
		}
		if err := i.Agents.Archival.RestorePassages(ctx, i.org, c.ID, page); err != nil {
			return at(passages.place, err)
		}
		if err := i.Agents.Archival.RestoreSuccessions(ctx, i.org, c.ID, successions); err != nil {
			return at(passages.place, err)
		}
	}
	return passages.end()
}

// restoreIdentities creates the file's identities that the organization lacks. It gives all of them their agents and
// blocks.
func (i *imports) restoreIdentities(ctx context.Context) error {
	keys := map[string]bool{}
	for it, err := range i.file.items(listIdentities) {
		if err != nil {
			return err
		}
		identity, err := i.identity(it)
		if err != nil {
			return at(it.place, err)
		}
		if keys[identity.IdentifierKey] {
			return db.Invalid("%s.identifier_key: %q is that of two identities", it.place, db.Short(identity.IdentifierKey))
		}
		keys[identity.IdentifierKey] = true
		present, err := i.Agents.RestoreIdentity(ctx, i.org, identity)
		if err != nil {
			return at(it.place, err)
		}
		if present != nil && (present.Name != identity.Name || present.Type != identity.Type ||
			string(present.Properties) != string(identity.Properties)) {
			i.leaveOut("%s: the organization has an identity %q, which gets the agents and blocks of the file, and keeps "+
				"its name, its type and its properties.", it.place, db.Short(identity.IdentifierKey))
		}
	}
	return nil
}

// identity reads an identity as POST /v1/identities does. Its agents and blocks are the imported ones.
func (i *imports) identity(it item) (identity agent.PortableIdentity, err error) {
	raw, removed, err := without(it.place, it.raw, "id", "created_at", "updated_at", "conversation_ids",
		"archive_ids", "folder_ids", "block_copies", "trees", "made_by", "changed_by")
	if err != nil {
		return identity, err
	}
	encoded, err := encode(removed)
	if err != nil {
		return identity, err
	}
	if err := decode(it.place, encoded, &identity); err != nil {
		return identity, err
	}
	request, err := i.readIdentity.Item(it.place, raw, &i.file.warnings)
	if err != nil {
		return identity, err
	}
	request.Fields().Change(&identity.Identity, true)
	if err := firstOf(i.makers(&identity.Makers), i.id("identity-", &identity.ID)); err != nil {
		return identity, err
	}
	for n := range identity.AgentIDs {
		if err := i.agentID(&identity.AgentIDs[n]); err != nil {
			return identity, err
		}
	}
	for n := range identity.BlockIDs {
		if err := i.id("block-", &identity.BlockIDs[n]); err != nil {
			return identity, err
		}
		if !i.ownBlocks[identity.BlockIDs[n]] {
			return identity, db.Invalid("block_ids[%d]: the file has no such block", n)
		}
	}
	for n := range identity.ConversationIDs {
		if err := i.id("conv-", &identity.ConversationIDs[n]); err != nil {
			return identity, err
		}
		if !i.conversations[identity.ConversationIDs[n]] {
			return identity, db.Invalid("conversation_ids[%d]: the file has no such conversation", n)
		}
	}
	return identity, i.owned(&identity)
}

// owned gives what a user owns its imported ids.
func (i *imports) owned(identity *agent.PortableIdentity) error {
	for n := range identity.ArchiveIDs {
		if err := i.id("archive-", &identity.ArchiveIDs[n]); err != nil {
			return err
		}
	}
	for n := range identity.FolderIDs {
		if err := i.id("source-", &identity.FolderIDs[n]); err != nil {
			return err
		}
	}
	for n := range identity.BlockCopies {
		b := &identity.BlockCopies[n]
		if err := firstOf(i.id("block-", &b.BlockID), i.id("block-", &b.TemplateID)); err != nil {
			return err
		}
		if !i.ownBlocks[b.BlockID] || !i.ownBlocks[b.TemplateID] {
			return db.Invalid("block_copies[%d]: the file has no such block", n)
		}
	}
	for n := range identity.Trees {
		t := &identity.Trees[n]
		if err := firstOf(i.agentID(&t.AgentID), i.id("tree-", &t.TreeID)); err != nil {
			return err
		}
	}
	return nil
}
