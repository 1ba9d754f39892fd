package lettadb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
)

// lettaAgent is an agent in Letta's database.
type lettaAgent struct {
	row
	Name         *string
	Description  *string
	MessageIDs   *[]string `json:"message_ids"` // the messages that its model sees in the default conversation
	System       *string
	Type         *string          `json:"agent_type"`
	LLM          json.RawMessage  `json:"llm_config"`
	Embedding    *embeddingConfig `json:"embedding_config"`
	Metadata     json.RawMessage  `json:"metadata_"`
	ToolRules    json.RawMessage  `json:"tool_rules"`
	Response     json.RawMessage  `json:"response_format"`
	Compaction   json.RawMessage  `json:"compaction_settings"`
	Timezone     *string
	MaxFilesOpen *int `json:"max_files_open"`
	ViewChars    *int `json:"per_file_view_window_char_limit"`
	Hidden       *bool
	LastRunAt    *lettaTime `json:"last_run_completion"`
	LastRunMS    *int64     `json:"last_run_duration_ms"`
	LastStop     *string    `json:"last_stop_reason"`
	Autoclear    bool       `json:"message_buffer_autoclear"`
	Sleeptime    *bool      `json:"enable_sleeptime"`
}

type llmConfig struct {
	Handle *string `json:"handle"`
	Model  string  `json:"model"`
	Window *int    `json:"context_window"`
}

// attached holds everything that is attached to an agent in Letta's database.
type attached struct {
	tags, blocks, folders, archives, tools []tie
	views                                  []view
	conversations                          []conversation
}

// tie is a row of a table that attaches something to an agent.
type tie struct {
	ID        string // id of the attached thing
	Name      string // name of an attached tool
	Type      string `json:"tool_type"`
	Tag       string
	IsOwner   bool `json:"is_owner"`
	IsDeleted bool `json:"is_deleted"`
}

func (t tie) deleted() bool { return t.IsDeleted }

// view is an entry in an agent's list of open files.
type view struct {
	row
	File   string     `json:"file_id"`
	IsOpen bool       `json:"is_open"`
	UsedAt *lettaTime `json:"last_accessed_at"`
}

// agents imports the organization's agents. Each agent is stored with its conversations in one transaction.
func (r *run) agents(ctx context.Context) error {
	all, err := list[lettaAgent](ctx, r, "agents", `SELECT * FROM agents WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, a := range all {
		attachments, err := r.attached(ctx, a)
		if err != nil {
			return err
		}
		history, err := r.note(ctx, a, attachments.conversations)
		if err != nil {
			return err
		}
		_, err = r.Agents.Agent(ctx, r.org, a.ID)
		if missing, err := absent(err); err != nil {
			return err
		} else if !missing {
			r.report.stored("agents", false)
			r.countAgent(attachments, history, func(t *Table, n int) { t.Present += n })
			continue
		}
		leftOut := r.report.table("agents").LeftOut
		if err := r.item(ctx, "agents", a.ID, func(txRun *run) error {
			return txRun.agent(ctx, a, attachments, history)
		}); err != nil {
			return err
		}
		if r.report.table("agents").LeftOut > leftOut {
			r.countAgent(attachments, history, func(t *Table, n int) { t.LeftOut += n })
		} else {
			history.count(r.report)
		}
	}
	return nil
}

// countAgent counts the rows of an agent that this run does not import.
func (r *run) countAgent(attachments attached, history *history, count func(t *Table, n int)) {
	for table, n := range map[string]int{"agents_tags": len(attachments.tags), "blocks_agents": len(attachments.blocks),
		"sources_agents": len(attachments.folders), "archives_agents": len(attachments.archives),
		"tools_agents": len(attachments.tools),
		"files_agents": len(attachments.views), "conversations": len(attachments.conversations), "messages": history.rows} {
		count(r.report.table(table), n)
	}
}

// attached reads everything that is attached to an agent.
func (r *run) attached(ctx context.Context, a lettaAgent) (attachments attached, err error) {
	for _, query := range []struct {
		into       *[]tie
		table, sql string
	}{
		{&attachments.tags, "agents_tags", `SELECT tag FROM agents_tags WHERE agent_id = $1 ORDER BY tag`},
		{&attachments.blocks, "blocks_agents", `
			SELECT block_id AS id FROM blocks_agents WHERE agent_id = $1 ORDER BY block_label, block_id`},
		{&attachments.folders, "sources_agents",
			`SELECT source_id AS id FROM sources_agents WHERE agent_id = $1 ORDER BY source_id`},
		{&attachments.archives, "archives_agents", `
			SELECT archive_id AS id, is_owner FROM archives_agents WHERE agent_id = $1 ORDER BY is_owner DESC, archive_id`},
		{&attachments.tools, "tools_agents", `
			SELECT t.id, t.name, t.tool_type FROM tools_agents x JOIN tools t ON t.id = x.tool_id
			WHERE agent_id = $1 ORDER BY t.name, t.id`},
	} {
		if *query.into, err = list[tie](ctx, r, query.table, query.sql, a.ID); err != nil {
			return attachments, err
		}
	}
	attachments.views, err = list[view](ctx, r, "files_agents", `
		SELECT * FROM files_agents WHERE agent_id = $1 ORDER BY last_accessed_at, id`, a.ID)
	if err != nil {
		return attachments, err
	}
	attachments.conversations, err = list[conversation](ctx, r, "conversations", `
		SELECT * FROM conversations WHERE agent_id = $1 ORDER BY created_at, id`, a.ID)
	return attachments, err
}

// agent stores an agent, with everything that is attached to it, and its conversations.
func (r *run) agent(ctx context.Context, a lettaAgent, attachments attached, h *history) error {
	h.reset()
	restored := r.newAgent(a, attachments)
	err := r.restoreAgent(ctx, restored)
	if errors.Is(err, db.ErrInvalid) && restored.Settings.CompactionSettings != nil {
		r.report.note("agent %s: its compaction settings are left out. %v", a.ID, err)
		restored.Settings.CompactionSettings = nil
		err = r.restoreAgent(ctx, restored)
	}
	if err != nil {
		return err
	}
	h.imported["agents_tags"] = len(attachments.tags)
	for _, kind := range []struct {
		table  string
		ties   []tie
		attach func(tie) error
	}{
		{"blocks_agents", attachments.blocks, func(t tie) error {
			return r.Agents.Blocks.RestoreAttachment(ctx, r.org, a.ID, t.ID, a.created())
		}},
		{"sources_agents", attachments.folders, func(t tie) error {
			return r.Agents.Files.RestoreAttachment(ctx, r.org, a.ID, t.ID)
		}},
		{"archives_agents", attachments.archives, func(t tie) error {
			return r.Agents.Archival.RestoreAttachment(ctx, r.org, a.ID, t.ID, t.ID == attachments.archives[0].ID)
		}},
		{"tools_agents", attachments.tools, func(t tie) error { return r.attachTool(ctx, a.ID, t) }},
	} {
		for _, t := range kind.ties {
			if err := r.try(ctx, h, kind.table, a.ID+": "+t.ID, func(txRun *run) error { return kind.attach(t) }); err != nil {
				return err
			}
		}
	}
	if err := r.views(ctx, a, attachments.views, h); err != nil {
		return err
	}
	if err := r.history(ctx, a, attachments, h); err != nil {
		return err
	}
	limits := agent.Agent{WindowLimit: restored.WindowLimit, Model: restored.Model, MaxFilesOpen: restored.MaxFilesOpen,
		ViewChars: restored.ViewChars, Settings: restored.Settings}.Limits()
	_, err = r.Agents.Files.Trim(ctx, r.org, a.ID, limits)
	return err
}

// restoreAgent stores an agent in a savepoint.
func (r *run) restoreAgent(ctx context.Context, restored agent.Restored) error {
	return db.Tx(ctx, r.Agents.DB, func(tx pgx.Tx) error {
		if err := r.Agents.With(tx).RestoreAgent(ctx, r.org, restored); err != nil {
			return err
		}
		return db.CheckQuotaLast(ctx, tx, r.org, db.QuotaAgents, 1)
	})
}

// try stores a part of an agent in a savepoint. If a rule forbids the part, try notes why it is left out.
func (r *run) try(ctx context.Context, h *history, table, id string, store func(txRun *run) error) error {
	err := db.Tx(ctx, r.Agents.DB, func(tx pgx.Tx) error { return store(r.with(tx)) })
	if errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) {
		h.left[table]++
		r.report.note("%s of agent %s: left out. %v", table, id, err)
		return nil
	}
	h.imported[table]++
	return err
}

func (r *run) attachTool(ctx context.Context, agentID string, t tie) error {
	if r.Has(t.Name) {
		return nil // the agent's settings name built-in tools
	}
	if err := r.Agents.RestoreAttachment(ctx, r.org, agentID, t.ID, time.Now()); !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return db.NotFound("Loci has no tool %s", db.Short(t.Name))
}

// newAgent returns the Loci agent for an agent of Letta's.
func (r *run) newAgent(a lettaAgent, attachments attached) agent.Restored {
	n := agent.Restored{ID: a.ID, CreatedAt: a.created(), UpdatedAt: a.updated(), LastRun: agent.LastRun{
		DurationMS: a.LastRunMS, StopReason: cleanText(a.LastStop)}, New: agent.New{
		Name: clipped(plainName(*cmp.Or(a.Name, new("")), "Agent"), 200), Description: cleanText(a.Description),
		Metadata: object(a.Metadata), Hidden: a.Hidden != nil && *a.Hidden, Embedding: a.Embedding.handle(),
		MaxFilesOpen: within(a.MaxFilesOpen, 1, 1000), ViewChars: within(a.ViewChars, 100, 10_000_000),
		Settings: agent.Settings{Tools: []string{}, MadeFor: agent.ForLetta,
			Prompt: &agent.PromptSettings{Results: agent.LettaResults}, CompactionSettings: object(a.Compaction),
			ResponseFormat: object(a.Response)}}}
	if a.LastRunAt != nil {
		n.Completion = &a.LastRunAt.Time
	}
	if a.System != nil {
		n.System = db.Clean(*a.System)
	}
	if a.Type != nil && slices.Contains(agent.Types, *a.Type) {
		n.Type = *a.Type
	}
	n.Timezone = timezone(a)
	n.Settings.ModelSettings = letta.SettingsIn(object(a.LLM))
	if c := (llmConfig{}); json.Unmarshal(a.LLM, &c) == nil { // fields of other types are left out
		n.WindowLimit = within(c.Window, 1, 100_000_000)
		if c.Handle != nil && *c.Handle != "" {
			n.Model = c.Handle
		} else if c.Model != "" {
			n.Model = &c.Model
		}
	}
	for _, t := range attachments.tags {
		n.Tags = append(n.Tags, clipped(t.Tag, 200))
	}
	n.Tags = db.Tags(n.Tags)
	for _, t := range attachments.tools {
		if r.Has(t.Name) {
			n.Settings.Tools = append(n.Settings.Tools, t.Name)
		}
	}
	n.Settings.ToolRules = r.rules(a, attachments)
	if a.Autoclear {
		n.Settings.MessageBufferAutoclear = new(true)
	}
	if a.Sleeptime != nil && *a.Sleeptime {
		r.report.note("agent %s: enable_sleeptime is left out: Loci runs no second agent that edits memory.", a.ID)
	}
	return n
}

// timezone returns an agent's timezone; empty if there is none of that name.
func timezone(a lettaAgent) string {
	if a.Timezone == nil || *a.Timezone == "Local" {
		return ""
	}
	if _, err := time.LoadLocation(*a.Timezone); err != nil {
		return ""
	}
	return *a.Timezone
}

// within returns a limit moved into a range; nil for a limit that is unset or not positive.
func within(limit *int, least, most int) *int {
	if limit == nil || *limit <= 0 {
		return nil
	}
	return new(min(max(*limit, least), most))
}

// rules returns an agent's tool rules, without rules about tools that the agent does not have in Loci.
func (r *run) rules(a lettaAgent, attachments attached) json.RawMessage {
	var rules, usable []json.RawMessage
	if json.Unmarshal(array(a.ToolRules), &rules) != nil { // there are no rules
		return nil
	}
	hasTool := func(name string) bool {
		return r.Has(name) ||
			slices.ContainsFunc(attachments.tools, func(t tie) bool { return t.Name == name && t.Type == customTool })
	}
	for _, rule := range rules {
		single := append(append([]byte("["), rule...), ']')
		if slices.ContainsFunc(letta.ToolRuleNames(single), func(name string) bool { return !hasTool(name) }) {
			r.report.note("agent %s: a rule of tools is left out, as it names one that Loci lacks: %s", a.ID,
				db.Short(string(rule)))
			continue
		}
		usable = append(usable, rule)
	}
	if len(usable) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(usable) // the rules are raw JSON
	return encoded
}

// views stores which files an agent has open. They are opened whole, because Letta's line numbers leave out blank
// lines.
func (r *run) views(ctx context.Context, a lettaAgent, views []view, h *history) error {
	for n, v := range views {
		opened := files.PortableView{AgentID: a.ID, FileID: v.File, IsOpen: v.IsOpen, UsedSeq: int64(n + 1),
			UsedAt: v.created()}
		if v.UsedAt != nil {
			opened.UsedAt = v.UsedAt.Time
		}
		err := r.try(ctx, h, "files_agents", a.ID+": "+v.File, func(txRun *run) error {
			err := txRun.Agents.Files.RestoreView(ctx, txRun.org, opened)
			return db.OrNotFound(err, "the agent has no such file: it, or its folder, is not attached")
		})
		if err != nil {
			return err
		}
	}
	return nil
}
