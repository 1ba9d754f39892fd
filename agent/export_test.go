package agent

import (
	"context"
	"encoding/json"
	"math"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Parts of this package that only its tests use: the functions behind a prompt that need no database.

// State is the input of a system prompt.
type State struct {
	System      string
	Blocks      []block.Block
	Rules       json.RawMessage
	Directories []files.Directory
	Counts      string
}

func (s State) prompt() systemPrompt {
	means := promptMeans{limits: files.Limits{MaxOpen: 5, ViewChars: 1000}}
	core := coreMemory{blocks: s.Blocks, has: toolset(nil)}
	return systemPrompt{system: s.System, blocks: core.renderBlocks(math.MaxInt, new(math.MaxInt)),
		rules: renderRules(s.Rules), directories: renderDirectories(s.Directories, means), counts: s.Counts}
}

// Parts returns the parts of the state's system prompt.
func (s State) Parts() []string { return s.prompt().parts() }

// Text returns the state's system prompt and the item at the end of its prompts.
func (s State) Text() string { return s.prompt().beginning() + s.prompt().state() }

// Request returns the pieces of the request for a state and its messages.
func (s State) Request(f Format, messages []recall.Message) [][]byte {
	prompt := s.prompt()
	wire, _ := converted(f, chat.WithState(messages, recall.User, prompt.state()), func(string) int { return 0 })
	return newRequest(Prompt{format: f, system: prompt, messages: wire}, map[string]any{"model": "m"}).pieces()
}

// CheckWindowLater runs the job that checks the window of an agent's default conversation.
func CheckWindowLater(ctx context.Context, s *Store, org db.Org, agentID string) error {
	return s.checkWindowLater(ctx, org, agentID, "")
}

// CheckIdleLater runs the job that compacts an agent's default conversation after a pause.
func CheckIdleLater(ctx context.Context, s *Store, org db.Org, agentID string) error {
	return s.checkIdleLater(ctx, org, agentID, "")
}

// FlushDue returns why a flush begins when so many tokens of a window are used; empty if none begins.
func FlushDue(f FlushSettings, tokens, window int) string {
	return f.due(tokens, window, plan.Defaults())
}

// Share sets the shares of categories.
var Share = share
