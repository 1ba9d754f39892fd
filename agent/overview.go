package agent

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// Overview lists the parts of an agent's prompt with their tokens, in Letta's form. External is the memory metadata;
// Filesystem is always nil.
type Overview struct {
	WindowMax            int     `json:"context_window_size_max"` // 32768 if the model's window is unknown
	WindowCurrent        int     `json:"context_window_size_current"`
	NumMessages          int     `json:"num_messages"`
	NumArchivalMemory    int     `json:"num_archival_memory"`
	NumRecallMemory      int     `json:"num_recall_memory"`
	TokensExternal       int     `json:"num_tokens_external_memory_summary"`
	External             string  `json:"external_memory_summary"`
	TokensSystem         int     `json:"num_tokens_system"`
	SystemPrompt         string  `json:"system_prompt"`
	TokensCoreMemory     int     `json:"num_tokens_core_memory"`
	CoreMemory           string  `json:"core_memory"`
	TokensFilesystem     int     `json:"num_tokens_memory_filesystem"`
	Filesystem           *string `json:"memory_filesystem"`
	TokensToolRules      int     `json:"num_tokens_tool_usage_rules"`
	ToolRules            *string `json:"tool_usage_rules"`
	TokensSkills         int     `json:"num_tokens_skills" doc:"Of their list, and of the preloaded ones."`
	Skills               *string `json:"skills" doc:"Their list; null if the agent has none."`
	TokensDirectories    int     `json:"num_tokens_directories"`
	Directories          *string `json:"directories"`
	TokensWorkingMemory  int     `json:"num_tokens_working_memory" doc:"Of the working memory."`
	WorkingMemory        *string `json:"working_memory" doc:"The conversation's working memory; null if it is empty."`
	TokensSummaryMemory  int     `json:"num_tokens_summary_memory"`
	SummaryMemory        *string `json:"summary_memory"`
	TokensFunctions      int     `json:"num_tokens_functions_definitions"`
	FunctionsDefinitions []any   `json:"functions_definitions"`
	TokensMessages       int     `json:"num_tokens_messages"`
	Messages             []any   `json:"messages"`
}

// shownMessages bounds the messages in an overview.
const shownMessages = recall.MaxWindow

// Overview returns the parts of an agent's window in a conversation (the default one if empty), counted on the next
// prompt. It does not set Messages. Instead it returns messages as the log has them: the current system prompt and the
// newest others.
func (s *Store) Overview(ctx context.Context, org db.Org, agentID, conversation string) (Overview, []recall.Message,
	error) {
	p, err := s.Assemble(ctx, org, agentID, conversation, "")
	if err != nil {
		return Overview{}, nil, err
	}
	return s.overviewOf(ctx, org, p)
}

// overviewOf returns the overview of a prompt, and the messages as the log has them.
func (s *Store) overviewOf(ctx context.Context, org db.Org, p Prompt) (Overview, []recall.Message, error) {
	total, err := s.Recall.CountMessages(ctx, org, p.Agent.ID)
	if err != nil {
		return Overview{}, nil, err
	}
	passages, err := s.Archival.CountPassages(ctx, org,
		archival.Reach{AgentID: p.Agent.ID, Users: p.Agent.Users(p.Conversation)})
	if err != nil {
		return Overview{}, nil, err
	}
	t := p.Tokens
	o := Overview{WindowMax: p.window(), WindowCurrent: t.Total, NumMessages: 1 + len(p.Messages) + p.unread.Count,
		NumArchivalMemory: passages, NumRecallMemory: total, External: p.system.metadata(), TokensExternal: t.Metadata,
		SystemPrompt: p.system.system, TokensSystem: t.System, CoreMemory: p.system.blocks, TokensCoreMemory: t.Blocks,
		ToolRules: orNil(p.system.rules), TokensToolRules: t.Rules,
		Skills: orNil(p.system.skills), TokensSkills: t.Skills,
		Directories: orNil(p.system.directories), TokensDirectories: t.Directories,
		WorkingMemory: orNil(p.system.working), TokensWorkingMemory: t.Working,
		SummaryMemory: orNil(p.summary), TokensSummaryMemory: t.Summary,
		FunctionsDefinitions: []any{}, TokensFunctions: t.Tools, Messages: []any{}, TokensMessages: t.Messages}
	for _, f := range ToolsIn(OpenAI, p.definitions) {
		o.FunctionsDefinitions = append(o.FunctionsDefinitions, f)
	}
	return o, slices.Concat([]recall.Message{p.logged}, p.Messages[max(0, len(p.Messages)-shownMessages):]), nil
}

// orNil returns a pointer to a text; nil if the text is empty.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Relations are the parts of an agent that memory stores hold.
type Relations struct {
	CoreMemory
	Folders    []files.Folder
	Identities []Identity
	MessageIDs []string               // of the messages that the model sees in the default conversation
	Embedding  *files.EmbeddingConfig // nil if the agent names no embedding model
}

// CoreMemory is the part of an agent's prompt that its tools change: its blocks and its views of files.
type CoreMemory struct {
	Blocks     []block.Block
	FileBlocks []FileBlock // empty if the caller did not ask for them
}

// Relations reads an agent's relations. The texts of its open files are read only withFiles.
func (s *Store) Relations(ctx context.Context, org db.Org, a Agent, withFiles bool) (r Relations, err error) {
	if r.Folders, err = s.Files.AgentFolders(ctx, org, files.Of(a.ID), db.Page{Ascending: true}); err != nil {
		return r, err
	}
	if r.CoreMemory, err = s.CoreMemory(ctx, org, a, withFiles && len(r.Folders) > 0); err != nil {
		return r, err
	}
	if r.Identities, err = s.IdentitiesOf(ctx, org, a.ID); err != nil {
		return r, err
	}
	conversation, err := s.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
	if err != nil {
		return r, err
	}
	visible, err := s.Recall.VisibleIDs(ctx, org, conversation)
	r.MessageIDs = visible[conversation.Key]
	if a.Embedding != nil {
		r.Embedding = new(s.Files.Embedding(files.DefaultChunkTokens))
	}
	return r, err
}

// CoreMemory reads an agent's blocks and, withFiles, the texts of its open files.
func (s *Store) CoreMemory(ctx context.Context, org db.Org, a Agent, withFiles bool) (m CoreMemory, err error) {
	m.FileBlocks = []FileBlock{}
	if m.Blocks, err = s.Blocks.OfAgent(ctx, org, a.ID); err != nil || !withFiles {
		return m, err
	}
	m.FileBlocks, err = s.FileBlocks(ctx, org, a)
	return m, err
}
