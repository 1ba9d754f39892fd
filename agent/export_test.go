package agent

import (
	"encoding/json"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// The parts of this package besides its API that tests see: the pure halves of a prompt.

// State is what a system prompt is compiled from.
type State struct {
	System      string
	Blocks      []block.Block
	Rules       json.RawMessage
	Directories []files.Directory
	Metadata    string
}

func (s State) prompt() systemPrompt {
	means := promptMeans{limits: files.Limits{MaxOpen: 5, ViewChars: 1000}}
	return systemPrompt{system: s.System, blocks: renderBlocks(s.Blocks), rules: renderRules(s.Rules),
		directories: renderDirectories(s.Directories, means), metadata: s.Metadata}
}

// Parts are the parts of the system prompt of a state.
func (s State) Parts() []string { return s.prompt().parts() }

// Request is the request for a state and messages, in its pieces.
func (s State) Request(f Format, messages []recall.Message) [][]byte {
	wire, _ := converted(f, messages, func(string) int { return 0 })
	return newRequest(Prompt{format: f, system: s.prompt(), messages: wire}, map[string]any{"model": "m"}).pieces()
}

// FlushDue returns why a flush begins at a number of tokens of a window; empty if it does not.
func FlushDue(f FlushSettings, tokens, window int) string {
	return f.due(tokens, window, plan.Defaults())
}

// Share sets the shares of categories.
var Share = share
