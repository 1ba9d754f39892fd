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

// lettaAgent is an agent at the source.
type lettaAgent struct {
	row
	Name         *string
	Description  *string
	MessageIDs   *[]string `json:"message_ids"` // that its model sees in the default conversation
	System       *string
	Type         *string          `json:"agent_type"`
	LLM          *llmConfig       `json:"llm_config"`
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

// attached is what is attached to an agent at the source.
type attached struct {
	tags, blocks, folders, archives, tools []tie
	views                                  []view
	conversations                          []conversation
}

// tie is a row of a table that ties something to an agent.
type tie struct {
	ID        string // of what is tied
	Name      string // of a tool
	Type      string `json:"tool_type"`
	Tag       string
	IsOwner   bool `json:"is_owner"`
	IsDeleted bool `json:"is_deleted"`
}

func (t tie) deleted() bool { return t.IsDeleted }

// view is what an agent's list of open files has of a file.
type view struct {
	row
	File   string     `json:"file_id"`
	IsOpen bool       `json:"is_open"`
	UsedAt *lettaTime `json:"last_accessed_at"`
}

// agents imports the agents of the organization, each with its conversations in one transaction.
func (r *run) agents(ctx context.Context) error {
	all, err := list[lettaAgent](ctx, r, "agents", `SELECT * FROM agents WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, a := range all {
		has, err := r.attached(ctx, a)
		if err != nil {
			return err
		}
		history, err := r.note(ctx, a, has.conversations)
		if err != nil {
			return err
		}
		_, err = r.Agents.Agent(ctx, r.org, a.ID)
		if missing, err := absent(err); err != nil {
			return err
		} else if !missing {
			r.report.stored("agents", false)
			r.countAgent(has, history, func(t *Table, n int) { t.Present += n })
			continue
		}
		left := r.report.table("agents").LeftOut
		if err := r.item(ctx, "agents", a.ID, func(in *run) error { return in.agent(ctx, a, has, history) }); err != nil {
			return err
		}
		if r.report.table("agents").LeftOut > left {
			r.countAgent(has, history, func(t *Table, n int) { t.LeftOut += n })
		} else {
			history.count(r.report)
		}
	}
	return nil
}

// countAgent counts the rows of an agent that is not imported now.
func (r *run) countAgent(has attached, history *history, count func(t *Table, n int)) {
	for table, n := range map[string]int{"agents_tags": len(has.tags), "blocks_agents": len(has.blocks),
		"sources_agents": len(has.folders), "archives_agents": len(has.archives), "tools_agents": len(has.tools),
		"files_agents": len(has.views), "conversations": len(has.conversations), "messages": history.rows} {
		count(r.report.table(table), n)
	}
}

// attached reads what is attached to an agent.
func (r *run) attached(ctx context.Context, a lettaAgent) (has attached, err error) {
	for _, of := range []struct {
		into       *[]tie
		table, sql string
	}{
		{&has.tags, "agents_tags", `SELECT tag FROM agents_tags WHERE agent_id = $1 ORDER BY tag`},
		{&has.blocks, "blocks_agents", `
			SELECT block_id AS id FROM blocks_agents WHERE agent_id = $1 ORDER BY block_label, block_id`},
		{&has.folders, "sources_agents", `SELECT source_id AS id FROM sources_agents WHERE agent_id = $1 ORDER BY source_id`},
		{&has.archives, "archives_agents", `
			SELECT archive_id AS id, is_owner FROM archives_agents WHERE agent_id = $1 ORDER BY is_owner DESC, archive_id`},
		{&has.tools, "tools_agents", `
			SELECT t.id, t.name, t.tool_type FROM tools_agents x JOIN tools t ON t.id = x.tool_id
			WHERE agent_id = $1 ORDER BY t.name, t.id`},
	} {
		if *of.into, err = list[tie](ctx, r, of.table, of.sql, a.ID); err != nil {
			return has, err
		}
	}
	has.views, err = list[view](ctx, r, "files_agents", `
		SELECT * FROM files_agents WHERE agent_id = $1 ORDER BY last_accessed_at, id`, a.ID)
	if err != nil {
		return has, err
	}
	has.conversations, err = list[conversation](ctx, r, "conversations", `
		SELECT * FROM conversations WHERE agent_id = $1 ORDER BY created_at, id`, a.ID)
	return has, err
}

// agent stores an agent with what is attached to it, and its conversations.
func (r *run) agent(ctx context.Context, a lettaAgent, has attached, h *history) error {
	h.reset()
	made := r.newAgent(a, has)
	err := r.restoreAgent(ctx, made)
	if errors.Is(err, db.ErrInvalid) && made.Settings.CompactionSettings != nil {
		r.report.note("agent %s: its compaction settings are left out. %v", a.ID, err)
		made.Settings.CompactionSettings = nil
		err = r.restoreAgent(ctx, made)
	}
	if err != nil {
		return err
	}
	h.imported["agents_tags"] = len(has.tags)
	for _, of := range []struct {
		table  string
		ties   []tie
		attach func(tie) error
	}{
		{"blocks_agents", has.blocks, func(t tie) error {
			return r.Agents.Blocks.RestoreAttachment(ctx, r.org, a.ID, t.ID, a.created())
		}},
		{"sources_agents", has.folders, func(t tie) error {
			return r.Agents.Files.RestoreAttachment(ctx, r.org, a.ID, t.ID)
		}},
		{"archives_agents", has.archives, func(t tie) error {
			return r.Agents.Archival.RestoreAttachment(ctx, r.org, a.ID, t.ID, t.ID == has.archives[0].ID)
		}},
		{"tools_agents", has.tools, func(t tie) error { return r.attachTool(ctx, a.ID, t) }},
	} {
		for _, t := range of.ties {
			if err := r.try(ctx, h, of.table, a.ID+": "+t.ID, func(in *run) error { return of.attach(t) }); err != nil {
				return err
			}
		}
	}
	if err := r.views(ctx, a, has.views, h); err != nil {
		return err
	}
	if err := r.history(ctx, a, has, h); err != nil {
		return err
	}
	limits := agent.Agent{WindowLimit: made.WindowLimit, Model: made.Model, MaxFilesOpen: made.MaxFilesOpen,
		ViewChars: made.ViewChars, Settings: made.Settings}.Limits()
	_, err = r.Agents.Files.Trim(ctx, r.org, a.ID, limits)
	return err
}

// restoreAgent stores an agent in a savepoint.
func (r *run) restoreAgent(ctx context.Context, made agent.Restored) error {
	return db.Tx(ctx, r.Agents.DB, func(tx pgx.Tx) error { return r.Agents.With(tx).RestoreAgent(ctx, r.org, made) })
}

// try stores a part of an agent in a savepoint, and notes why it is left out.
func (r *run) try(ctx context.Context, h *history, table, id string, store func(in *run) error) error {
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
		return nil // its settings name it
	}
	if err := r.Agents.RestoreAttachment(ctx, r.org, agentID, t.ID, time.Now()); !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return db.NotFound("Loci has no tool %s", db.Short(t.Name))
}

// newAgent returns what an agent becomes.
func (r *run) newAgent(a lettaAgent, has attached) agent.Restored {
	n := agent.Restored{ID: a.ID, CreatedAt: a.created(), UpdatedAt: a.updated(), LastRun: agent.LastRun{
		DurationMS: a.LastRunMS, StopReason: cleanText(a.LastStop)}, New: agent.New{
		Name: clipped(plainName(*cmp.Or(a.Name, new("")), "Agent"), 200), Description: cleanText(a.Description),
		Metadata: object(a.Metadata), Hidden: a.Hidden != nil && *a.Hidden, Embedding: a.Embedding.handle(),
		MaxFilesOpen: within(a.MaxFilesOpen, 1, 1000), ViewChars: within(a.ViewChars, 100, 10_000_000),
		Settings: agent.Settings{Tools: []string{}, CompactionSettings: object(a.Compaction),
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
	if a.Timezone != nil && *a.Timezone != "Local" {
		if _, err := time.LoadLocation(*a.Timezone); err == nil {
			n.Timezone = *a.Timezone
		}
	}
	if c := a.LLM; c != nil {
		n.WindowLimit = within(c.Window, 1, 100_000_000)
		if c.Handle != nil && *c.Handle != "" {
			n.Model = c.Handle
		} else if c.Model != "" {
			n.Model = &c.Model
		}
	}
	for _, t := range has.tags {
		n.Tags = append(n.Tags, clipped(t.Tag, 200))
	}
	n.Tags = db.Tags(n.Tags)
	for _, t := range has.tools {
		if r.Has(t.Name) {
			n.Settings.Tools = append(n.Settings.Tools, t.Name)
		}
	}
	n.Settings.ToolRules = r.rules(a, has)
	if a.Autoclear {
		r.report.note("agent %s: message_buffer_autoclear is left out: an agent sees its conversation until it is compacted.",
			a.ID)
	}
	if a.Sleeptime != nil && *a.Sleeptime {
		r.report.note("agent %s: enable_sleeptime is left out: Loci runs no second agent that edits memory.", a.ID)
	}
	return n
}

// within returns a limit between others; nil for one that is not set, or not positive.
func within(limit *int, least, most int) *int {
	if limit == nil || *limit <= 0 {
		return nil
	}
	return new(min(max(*limit, least), most))
}

// rules returns the rules of an agent's tools without those of tools that it lacks now.
func (r *run) rules(a lettaAgent, has attached) json.RawMessage {
	var rules, kept []json.RawMessage
	if json.Unmarshal(array(a.ToolRules), &rules) != nil { // there are none
		return nil
	}
	known := func(name string) bool {
		return r.Has(name) ||
			slices.ContainsFunc(has.tools, func(t tie) bool { return t.Name == name && t.Type == customTool })
	}
	for _, rule := range rules {
		one := append(append([]byte("["), rule...), ']')
		if slices.ContainsFunc(letta.ToolRuleNames(one), func(name string) bool { return !known(name) }) {
			r.report.note("agent %s: a rule of tools is left out, as it names one that Loci lacks: %s", a.ID,
				db.Short(string(rule)))
			continue
		}
		kept = append(kept, rule)
	}
	if len(kept) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(kept) // raw JSON
	return encoded
}

// views stores which files an agent has open, whole: Letta's numbers of lines are those of the text without blank
// lines.
func (r *run) views(ctx context.Context, a lettaAgent, views []view, h *history) error {
	for n, v := range views {
		used := files.PortableView{AgentID: a.ID, FileID: v.File, IsOpen: v.IsOpen, UsedSeq: int64(n + 1),
			UsedAt: v.created()}
		if v.UsedAt != nil {
			used.UsedAt = v.UsedAt.Time
		}
		err := r.try(ctx, h, "files_agents", a.ID+": "+v.File, func(in *run) error {
			err := in.Agents.Files.RestoreView(ctx, in.org, used)
			return db.OrNotFound(err, "the agent has no such file: it, or its folder, is not attached")
		})
		if err != nil {
			return err
		}
	}
	return nil
}
