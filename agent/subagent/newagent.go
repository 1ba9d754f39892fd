package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// ownWords are the instructions of a sub-agent if the caller gives none.
const ownWords = "You are a sub-agent. The first message is a task that another agent gave you, and all that you " +
	"know of its work. Do the task with the tools that you have, without asking anyone. End with one message that is " +
	"the result: it is all that the other agent is shown."

// toolsOf returns the names of the parent's tools that a sub-agent gets: all, or only the given ones.
func (s *Store) toolsOf(ctx context.Context, org db.Org, parent agent.Agent, only []string) ([]string, error) {
	definitions, err := s.Agents.Definitions(ctx, org, parent)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	if only == nil {
		return names, nil
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, db.Invalid("tools: the parent has no tool %q; it has %s", db.Short(name), strings.Join(names, ", "))
		}
	}
	return append([]string{}, only...), nil
}

// newAgent makes an agent for a sub-agent, and returns its conversation.
func (s *Store) newAgent(ctx context.Context, org db.Org, parent agent.Agent, n New, has []string) (
	child recall.Conversation, err error) {
	settings, err := settingsFor(parent, n, has)
	if err != nil {
		return child, err
	}
	if err := s.Agents.CheckSkills(ctx, org, parent, n.Skills); err != nil {
		return child, err
	}
	folders, err := s.foldersFor(ctx, org, parent, n)
	if err != nil {
		return child, err
	}
	request := agent.New{Name: n.nameFor(parent), System: ownWords, Timezone: parent.Timezone, Model: parent.Model,
		Embedding: parent.Embedding, WindowLimit: parent.WindowLimit, MaxFilesOpen: parent.MaxFilesOpen,
		ViewChars: parent.ViewChars, Hidden: true, Depth: n.depth, Settings: settings, FolderIDs: folders,
		ToolIDs: attached(parent, has)}
	if n.System != nil {
		request.System = *n.System
	}
	if n.Model != nil {
		request.Model, request.WindowLimit = n.Model, nil
	}
	if n.WindowLimit != nil {
		request.WindowLimit = n.WindowLimit
	}
	a, err := s.Agents.Create(ctx, org, request)
	if err != nil {
		return child, err
	}
	if err := s.grant(ctx, org, parent, a, n); err != nil {
		return child, err
	}
	return s.Agents.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
}

// settingsFor returns the settings of a sub-agent: its tools, the parent's approval rules for them, and what it shares.
func settingsFor(parent agent.Agent, n New, has []string) (agent.Settings, error) {
	s := agent.Settings{Tools: builtin(parent, has), MadeFor: parent.Settings.MadeFor, OpenOnAttach: new(false),
		CompactionSettings: parent.Settings.CompactionSettings}
	if len(n.Skills) > 0 {
		s.Skills = &agent.SkillSettings{Preload: n.Skills}
	}
	if n.Model == nil {
		s.ModelSettings = parent.Settings.ModelSettings
	}
	if n.Compaction != nil {
		s.CompactionSettings = n.Compaction
	}
	if parent.Settings.ToolRules == nil {
		return s, nil
	}
	var rules, approvals []json.RawMessage
	_ = json.Unmarshal(parent.Settings.ToolRules, &rules) // a client may have stored JSON that is not a list
	for _, raw := range rules {
		var r struct {
			Type string `json:"type"`
			Tool string `json:"tool_name"`
		}
		if json.Unmarshal(raw, &r) == nil && r.Type == "requires_approval" && slices.Contains(has, r.Tool) {
			approvals = append(approvals, raw)
		}
	}
	if approvals == nil {
		return s, nil
	}
	var err error
	s.ToolRules, err = json.Marshal(approvals)
	return s, err
}

// builtin returns the tools that are the server's, attached the ids of those that are the parent's own.
func builtin(parent agent.Agent, has []string) []string {
	names := []string{}
	for _, name := range has {
		if !slices.ContainsFunc(parent.Attached, func(t agent.AttachedTool) bool { return t.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

func attached(parent agent.Agent, has []string) (ids []string) {
	for _, t := range parent.Attached {
		if slices.Contains(has, t.Name) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// foldersFor returns the ids of the folders of a sub-agent: the requested ones, and those of its files and skills.
func (s *Store) foldersFor(ctx context.Context, org db.Org, parent agent.Agent, n New) ([]string, error) {
	seen := parent.Folders(recall.Conversation{UserKey: db.UserOf(ctx)})
	all, err := s.Agents.Files.AgentFolders(ctx, org, seen, db.Page{})
	if err != nil {
		return nil, err
	}
	ids, err := s.Agents.SkillFolders(ctx, org, parent, n.Skills)
	if err != nil {
		return nil, err
	}
	for _, id := range n.Folders {
		i := slices.IndexFunc(all, func(f files.Folder) bool { return f.ID == id || f.Name == id })
		if i < 0 {
			return nil, db.Invalid("folders: the parent has no folder %s", db.Short(id))
		}
		ids = append(ids, all[i].ID)
	}
	for _, name := range n.Files {
		i := slices.IndexFunc(all, func(f files.Folder) bool { return strings.HasPrefix(name, f.Name+"/") })
		if i < 0 {
			return nil, db.Invalid("files: the parent has no folder of the file %q; a name is folder/file", db.Short(name))
		}
		ids = append(ids, all[i].ID)
	}
	slices.Sort(ids)
	return slices.Compact(append([]string{}, ids...)), nil
}

// grant gives a new sub-agent the granted blocks, memory tree and open files of its parent.
func (s *Store) grant(ctx context.Context, org db.Org, parent, child agent.Agent, n New) error {
	has, err := s.Agents.Blocks.OfAgent(ctx, org, parent.ID)
	if err != nil {
		return err
	}
	for _, g := range n.withDefaults(has) {
		attach := s.Agents.Blocks.Attach
		index := -1
		for i, b := range has {
			if b.ID == g.ID || b.Label == g.ID {
				index = i
			}
		}
		if index < 0 {
			return db.Invalid("blocks: the parent has no block %s", db.Short(g.ID))
		}
		if g.ReadOnly || has[index].ReadOnly {
			attach = s.Agents.Blocks.AttachReadOnly
		}
		if err := attach(ctx, org, child.ID, has[index].ID); err != nil {
			return err
		}
	}
	if err := s.grantFiles(ctx, org, parent, child, n); err != nil {
		return err
	}
	if err := s.grantTree(ctx, org, parent, child, n.Tree); err != nil || len(n.Files) == 0 {
		return err
	}
	var requests []files.OpenRequest
	for _, name := range n.Files {
		requests = append(requests, files.OpenRequest{FileName: name})
	}
	_, err = s.Agents.Files.Open(ctx, org, files.Of(child.ID), files.OpenArgs{Requests: requests, Limits: child.Limits()})
	return err
}

func (s *Store) grantTree(ctx context.Context, org db.Org, parent, child agent.Agent, g *Grant) error {
	if g == nil {
		return nil
	}
	t, err := s.Agents.MemoryFiles.OfAgent(ctx, org, parent.ID)
	if err != nil {
		return err
	}
	if id := cmp.Or(g.ID, t.ID); id != t.ID {
		return db.Invalid("memory_tree: the parent's tree is %s, not %s", t.ID, db.Short(id))
	}
	return s.Agents.MemoryFiles.Attach(ctx, org, child.ID, t.ID, g.ReadOnly || t.ReadOnly)
}
