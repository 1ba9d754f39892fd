package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// Create creates an agent with its folders, blocks and default conversation, in one transaction. ErrNotFound if a
// folder or a block does not exist, ErrInvalid if a value, a block or a message breaks a rule.
func (s *Store) Create(ctx context.Context, org db.Org, n New) (Agent, error) {
	if err := cmp.Or(checkName(n.Name), db.CheckTags(n.Tags)); err != nil {
		return Agent{}, err
	}
	if err := checkLimits(n.WindowLimit, n.MaxFilesOpen, n.ViewChars); err != nil {
		return Agent{}, err
	}
	if err := n.Settings.check(); err != nil {
		return Agent{}, err
	}
	if n.Settings.RecallScope == "" {
		n.Settings.RecallScope = DefaultScope(n.Settings.MadeFor)
	}
	chosen := n.WindowLimit
	n.WindowLimit = s.windowOf(ctx, n)
	var err error
	if n.Settings.CompactionSettings, err = mergeCompaction(nil, n.Settings.CompactionSettings); err != nil {
		return Agent{}, err
	}
	var a Agent
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if err := inTx.Files.LockFolders(ctx, org, "", n.FolderIDs); err != nil {
			return err
		}
		if err := inTx.lockNamed(ctx, org, n.RuleTools); err != nil {
			return err
		}
		var err error
		if a, err = inTx.insert(ctx, org, n); err != nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: a.ID, Type: event.AgentCreated,
			RefID: a.ID}); err != nil {
			return err
		}
		err = inTx.recordPolicy(ctx, org, policyChanged{AgentID: a.ID, Now: n.Settings.CompactionSettings})
		if err != nil {
			return err
		}
		if a, err = inTx.equip(ctx, org, a, n); err != nil {
			return err
		}
		prompt, err := inTx.SystemPrompt(ctx, org, a)
		if err != nil {
			return err
		}
		if err := inTx.Recall.Begin(ctx, org, a.ID, prompt); err != nil {
			return err
		}
		if chosen != nil {
			if err := inTx.mustHoldPrompt(ctx, org, a.ID); err != nil {
				return err
			}
		}
		if len(n.Messages) > 0 {
			if _, err := inTx.Recall.Append(ctx, org, a.ID, recall.DefaultConversation, n.Messages); err != nil {
				return err
			}
		}
		return db.CheckQuotaLast(ctx, tx, org, db.QuotaAgents, 1)
	})
	return a, err
}

// equip attaches folders, blocks, identities and tools to a new agent, and returns the changed agent.
func (s *Store) equip(ctx context.Context, org db.Org, a Agent, n New) (Agent, error) {
	for _, folder := range n.FolderIDs {
		attachment := files.Attachment{AgentID: a.ID, FolderID: folder, Limits: a.Limits()}
		if err := s.Files.Attach(ctx, org, attachment); err != nil {
			return a, err
		}
	}
	if err := s.attachBlocks(ctx, org, a.ID, n); err != nil {
		return a, err
	}
	if len(n.IdentityIDs) > 0 {
		if err := s.setIdentities(ctx, org, a.ID, n.IdentityIDs); err != nil {
			return a, err
		}
	}
	var err error
	if len(n.FolderIDs) > 0 { // they may have skills
		if a, err = s.Agent(ctx, org, a.ID); err != nil {
			return a, err
		}
	}
	if len(n.ToolIDs) == 0 {
		return a, nil
	}
	added, err := s.setTools(ctx, org, a.ID, n.ToolIDs)
	if err != nil {
		return a, err
	}
	return s.askForAdded(ctx, org, a, added)
}

// askForAdded adds the approval rules of newly attached tools, and returns the changed agent.
func (s *Store) askForAdded(ctx context.Context, org db.Org, a Agent, added []int64) (Agent, error) {
	if len(added) == 0 {
		return a, nil
	}
	if err := s.askForApproval(ctx, org, a.ID, added); err != nil {
		return a, err
	}
	return s.Agent(ctx, org, a.ID)
}

// attachBlocks creates and attaches the blocks of a new agent.
func (s *Store) attachBlocks(ctx context.Context, org db.Org, id string, n New) error {
	var ids []string
	for _, b := range n.Blocks {
		created, err := s.Blocks.Create(ctx, org, block.OperatorAuthor, b)
		if err != nil {
			return err
		}
		ids = append(ids, created.ID)
	}
	for _, b := range slices.Concat(ids, n.BlockIDs) {
		if err := s.Blocks.Attach(ctx, org, id, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) insert(ctx context.Context, org db.Org, n New) (Agent, error) {
	return db.One[Agent](ctx, s.DB, db.Counting("agents", `
		INSERT INTO agents (org, name, agent_type, description, metadata, system, tags, timezone, model, embedding,
		                    context_window_limit, max_files_open, per_file_view_window_char_limit, hidden, settings,
		                    depth)
		VALUES (@org, @name, @type, @description, @metadata, @system, @tags, @timezone, @model, @embedding,
		        @window, @max_files, @view_chars, @hidden, @settings, @depth)`, `, `+ownColumns)+`
		SELECT `+ownColumns+`, '[]'::json AS attached_tools, '[]'::json AS subagents, false AS has_skills FROM added`,
		pgx.StrictNamedArgs{"org": org, "name": n.Name, "type": cmp.Or(n.Type, DefaultType), "description": n.Description,
			"metadata": n.Metadata, "system": n.System, "tags": notNil(n.Tags), "timezone": cmp.Or(n.Timezone, "UTC"),
			"model": n.Model, "embedding": n.Embedding, "window": n.WindowLimit, "max_files": n.MaxFilesOpen,
			"view_chars": n.ViewChars, "hidden": n.Hidden, "settings": n.Settings, "depth": n.Depth})
}
