package agentfile

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// readAgents are fields of an agent that the import reads itself or ignores. Letta's format has the ignored ones where
// its server has already decided.
var readAgents = []string{"id", "messages", "in_context_message_ids", "files_agents", "group_ids", "tool_ids", "tools",
	"source_ids", "folder_ids", "block_ids", "embedding_config", "embedding_chunk_size", "include_base_tools",
	"include_base_tool_rules", "include_default_source", "enable_reasoner", "max_tokens", "max_reasoning_tokens",
	"reasoning", "parallel_tool_calls", "core_memory"}

// notImported are the fields of an agent that Loci does not store, and the reasons.
var notImported = []struct{ field, why string }{
	{"tool_exec_environment_variables", "this server runs no custom tools and stores no secrets"},
	{"secrets", "this server runs no custom tools and stores no secrets"},
	{"identity_ids", "identities are no part of the file"},
	{"group_ids", "Loci runs no groups of agents"},
	{"include_multi_agent_tools", "this server has no tools for several agents"},
	{"memory_variables", "this server has no templates"},
	{"from_template", "this server has no templates"},
	{"template", "this server has no templates"},
	{"template_id", "this server has no templates"},
	{"base_template_id", "this server has no templates"},
	{"deployment_id", "this server has no templates"},
	{"entity_id", "this server has no templates"},
	{"project", "this server has no projects"},
	{"project_id", "this server has no projects"},
	{"enable_sleeptime", "this server runs no second agent that edits memory"},
}

// agents reads the agents of the file one by one.
func (i *imports) agents(take func(agentOf) error) error {
	ids := map[string]bool{}
	for it, err := range i.file.items(listAgents) {
		if err != nil {
			return err
		}
		a, err := i.agent(it)
		if err != nil {
			return err
		}
		if err := remember(ids, it.place, a.fields.ID, true); err != nil {
			return err
		}
		if err := take(a); err != nil {
			return err
		}
	}
	for n, a := range i.file.own.Agents {
		if !ids[a.Of] {
			return db.Invalid("loci.agents[%d].of: the file has no agent %q", n, db.Short(a.Of))
		}
	}
	return nil
}

func (i *imports) agent(it item) (a agentOf, err error) {
	a.place = it.place
	raw, removed, err := without(it.place, it.raw, readAgents...)
	if err != nil {
		return a, err
	}
	encoded, err := encode(removed)
	if err != nil {
		return a, err
	}
	if err := decode(it.place, encoded, &a.fields); err != nil {
		return a, err
	}
	i.noteUnknown(it.place+".messages", removed["messages"], reflect.TypeFor[[]fileMessage]())
	i.noteUnknown(it.place+".files_agents", removed["files_agents"], reflect.TypeFor[[]fileView]())
	if err := checkWindow(it); err != nil {
		return a, err
	}
	if raw, err = i.withoutUnserved(it, raw, removed); err != nil {
		return a, err
	}
	if raw, err = i.withoutBrokenRules(it, raw); err != nil {
		return a, err
	}
	if raw, err = i.withOwn(&a, raw); err != nil {
		return a, err
	}
	request, err := i.readAgent.Item(it.place, raw, &i.file.warnings)
	if err != nil {
		return a, err
	}
	if a.New, err = request.New(); err != nil {
		return a, at(it.place, err)
	}
	for _, sentence := range request.LeftOut() {
		i.leaveOut("%s.%s", it.place, sentence)
	}
	if a.own != nil {
		if a.Depth = a.own.Depth; a.Depth < 0 {
			return a, db.Invalid("%s: loci.agents: depth is %d; it must be from 0", it.place, a.Depth)
		}
	}
	if a.own == nil {
		a.Settings.MadeFor, a.Settings.Prompt = agent.ForLetta, &agent.PromptSettings{Results: agent.LettaResults}
	}
	i.override(&a)
	a.Settings.Tools, a.ToolIDs, err = i.toolsOf(a)
	return a, err
}

// checkWindow returns ErrInvalid for a context window below 1. A full file has the agent's own limit elsewhere.
func checkWindow(it item) error {
	var a struct {
		LLMConfig struct {
			Window *int `json:"context_window"`
		} `json:"llm_config"`
	}
	if err := decode(it.place, it.raw, &a); err != nil {
		return err
	}
	if w := a.LLMConfig.Window; w != nil && *w < 1 {
		return db.Invalid("%s.llm_config.context_window is %d; it must be at least 1", it.place, *w)
	}
	return nil
}

// withoutUnserved removes the fields that Loci does not store from an agent's fields. It notes those that are not
// empty.
func (i *imports) withoutUnserved(it item, raw json.RawMessage, also map[string]json.RawMessage) (
	json.RawMessage, error) {
	var names []string
	for _, n := range notImported {
		names = append(names, n.field)
	}
	raw, removed, err := without(it.place, raw, names...)
	if err != nil {
		return nil, err
	}
	for _, n := range notImported {
		value := removed[n.field]
		if value == nil {
			value = also[n.field]
		}
		switch strings.Join(strings.Fields(string(value)), "") {
		case "", "null", "{}", "[]", "false", `""`:
		default:
			i.leaveOut("%s.%s: left out, as %s.", it.place, n.field, n.why)
		}
	}
	return raw, nil
}

// withoutBrokenRules removes from an agent's fields the tool rules that name no tool, and notes them.
func (i *imports) withoutBrokenRules(it item, raw json.RawMessage) (json.RawMessage, error) {
	fields, rules := object{}, []object{}
	if err := decode(it.place, raw, &fields); err != nil {
		return nil, err
	}
	if json.Unmarshal(fields["tool_rules"], &rules) != nil {
		return raw, nil //nolint:nilerr // they are absent, or not a list, which is refused later
	}
	named := []object{}
	for n, r := range rules {
		if name := string(orEmpty(r["tool_name"])); name == `""` || name == "null" {
			i.leaveOut("%s.tool_rules[%d]: left out, as it names no tool.", it.place, n)
			continue
		}
		named = append(named, r)
	}
	if len(named) == len(rules) {
		return raw, nil
	}
	var err error
	if fields["tool_rules"], err = encode(named); err != nil {
		return nil, err
	}
	return encode(fields)
}

// withOwn replaces Letta's fields of an agent by the file's own Loci fields, if the file has them.
func (i *imports) withOwn(a *agentOf, raw json.RawMessage) (json.RawMessage, error) {
	var id string
	_ = json.Unmarshal(a.fields.ID, &id) // remember refuses an id of another type
	n := slices.IndexFunc(i.file.own.Agents, func(o lociAgent) bool { return o.Of == id })
	if n < 0 {
		if i.file.own.Full {
			return nil, db.Invalid("%s: loci.agents has no agent of %q", a.place, db.Short(id))
		}
		return raw, nil
	}
	a.own = &i.file.own.Agents[n]
	fields := map[string]json.RawMessage{}
	if err := decode(a.place, raw, &fields); err != nil {
		return nil, err
	}
	ownFields, err := encode(a.own.Fields)
	if err != nil {
		return nil, err
	}
	if i.file.own.Full {
		for _, name := range []string{"llm_config", "model", "embedding", "message_buffer_autoclear",
			"enable_sleeptime"} {
			delete(fields, name)
		}
	} else if a.own.Fields.Settings != nil {
		keep := map[string]json.RawMessage{}
		_ = json.Unmarshal(fields["llm_config"], &keep) // its schema is checked if it stays
		fields["llm_config"], err = encode(map[string]json.RawMessage{"handle": orNull(keep["handle"]),
			"model": orEmpty(keep["model"])})
	}
	if err == nil {
		err = decode(fmt.Sprintf("loci.agents[%d].fields", n), ownFields, &fields)
	}
	if err != nil {
		return nil, err
	}
	return encode(fields)
}

// override applies the import's options to an agent.
func (i *imports) override(a *agentOf) {
	if a.Embedding == nil && a.own == nil {
		a.Embedding = a.fields.Embedding.Handle
	}
	if i.Name != "" {
		a.Name = i.Name
	}
	if i.CopySuffix {
		a.Name += "_copy"
	}
	if i.Model != nil {
		a.Model, a.WindowLimit = i.Model, nil
	}
	if i.Embedding != nil {
		a.Embedding = i.Embedding
	}
}

func (i *imports) createAgents(ctx context.Context) error {
	return i.agents(func(a agentOf) error { return i.createAgent(ctx, a) })
}

func (i *imports) createAgent(ctx context.Context, a agentOf) error {
	var err error
	if a.BlockIDs, err = known(i.blocks, a.place+".block_ids", a.fields.BlockIDs); err != nil {
		return err
	}
	folders := append(a.fields.SourceIDs, a.fields.FolderIDs...)
	if a.FolderIDs, err = known(i.folders, a.place+".source_ids", folders); err != nil {
		return err
	}
	var messages []recall.Draft
	hidden := 0
	if !i.NoMessages {
		if messages, hidden, err = i.messagesOf(a); err != nil {
			return err
		}
	}
	bare := agent.Agent{Type: a.Type, Settings: a.Settings, Model: a.Model, WindowLimit: a.WindowLimit}
	if a.System == bare.Instructions(i.Tools.Definitions(bare, len(a.FolderIDs) > 0)) {
		a.System = ""
	}
	if a.Settings.ToolRules, err = i.knownRules(ctx, a); err != nil {
		return err
	}
	created, err := i.Agents.Create(ctx, i.org, a.New)
	if err != nil {
		return at(a.place, err)
	}
	if err := i.restoreSubagents(ctx, created.ID, a); err != nil {
		return at(a.place, err)
	}
	if len(messages) > 0 {
		if err := i.Agents.Recall.AppendAll(ctx, i.org, created.ID, recall.DefaultConversation, messages); err != nil {
			return at(a.place, err)
		}
	}
	if err := i.hide(ctx, created.ID, hidden); err != nil {
		return at(a.place+".in_context_message_ids", err)
	}
	if err := i.openFiles(ctx, created.ID, a); err != nil {
		return err
	}
	i.made.AgentIDs = append(i.made.AgentIDs, created.ID)
	return nil
}

// known maps ids in the file to the ids of the objects that the import created. ErrInvalid if an id is unknown or
// occurs twice.
func known(created map[string]string, place string, ids []string) ([]string, error) {
	all := []string{}
	for n, id := range ids {
		newID, ok := created[id]
		if !ok {
			return nil, db.Invalid("%s[%d]: the file has no %q", place, n, db.Short(id))
		}
		if slices.Contains(all, newID) {
			return nil, db.Invalid("%s[%d]: %q is in the list twice", place, n, db.Short(id))
		}
		all = append(all, newID)
	}
	return all, nil
}

// hide takes messages out of a new agent's view: the first ones after the system prompt.
func (i *imports) hide(ctx context.Context, agentID string, messages int) error {
	if messages == 0 {
		return nil
	}
	c, err := i.Agents.Recall.Conversation(ctx, i.org, agentID, recall.DefaultConversation)
	if err != nil {
		return err
	}
	tokens := int64(0)
	for m, err := range i.Agents.Recall.Export(ctx, i.org, c.Key, 1) {
		if err != nil {
			return err
		}
		if m.Position > messages+1 {
			break
		}
		tokens += int64(m.Tokens)
	}
	_, err = i.Agents.Recall.ChangeView(ctx, i.org, c, recall.ContextView{Version: c.Version,
		FirstVisible: messages + 2, HiddenTokens: tokens}, nil)
	return err
}

// openFiles opens the files that the file lists as open for an agent.
func (i *imports) openFiles(ctx context.Context, agentID string, a agentOf) error {
	for n, v := range a.fields.Views {
		place := fmt.Sprintf("%s.files_agents[%d]", a.place, n)
		f, ok := i.files[v.FileID]
		if !ok {
			return db.Invalid("%s.file_id: the file has no %q", place, db.Short(v.FileID))
		}
		if f.id == "" || !v.IsOpen {
			continue // either not imported, or closed like every new file
		}
		if !slices.Contains(a.FolderIDs, f.folder) {
			return db.Invalid("%s.file_id: the agent has not the source of the file", place)
		}
		view := files.PortableView{AgentID: agentID, FileID: f.id, IsOpen: true, UsedSeq: int64(n + 1), UsedAt: time.Now()}
		if v.LastAccessedAt != nil {
			view.UsedAt = v.LastAccessedAt.Time
		}
		if err := i.Agents.Files.RestoreView(ctx, i.org, view); err != nil {
			return at(place, err)
		}
	}
	_, err := i.Agents.Files.Trim(ctx, i.org, agentID, a.limits())
	return err
}
