package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// prompt is the compiled system prompt in its parts. The part that changes most often comes last, so that a provider's
// cache of the beginning stays valid.
type prompt struct {
	system      string // the base instructions
	blocks      string // empty if no block is attached
	rules       string // empty if no tool has one
	directories string // empty if no folder is attached
	metadata    string

	openChars int // characters of the views of open files
}

// parts returns texts whose concatenation is the prompt.
func (p prompt) parts() []string {
	var parts []string
	for _, part := range []string{p.system, p.blocks, p.rules, p.directories, p.metadata} {
		if part != "" && len(parts) > 0 {
			part = "\n\n" + part
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func (p prompt) String() string { return strings.Join(p.parts(), "") }

// SystemPrompt compiles the system prompt of an agent. The same state compiles to the same bytes.
func (s *Store) SystemPrompt(ctx context.Context, org db.Org, a Agent) (string, error) {
	empty := recall.Conversation{IsDefault: true, ContextView: recall.ContextView{FirstVisible: 1}}
	return s.compileNow(ctx, org, a, empty)
}

// compileNow compiles the system prompt of a conversation with what the agent has now.
func (s *Store) compileNow(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (string, error) {
	tools, err := s.definitions(ctx, org, a)
	if err != nil {
		return "", err
	}
	p, err := s.compile(ctx, org, a, c, promptMeans{a.Limits(), tools})
	return p.String(), err
}

// promptMeans are what an agent can do, as far as its system prompt follows from it.
type promptMeans struct {
	limits files.Limits // of the views of open files
	tools  []Definition
}

// compile compiles the system prompt of a conversation.
func (s *Store) compile(ctx context.Context, org db.Org, a Agent, c recall.Conversation, m promptMeans) (prompt,
	error) {
	directories, err := s.Files.Directories(ctx, org, a.ID, m.limits)
	if err != nil {
		return prompt{}, err
	}
	blocks, err := s.Blocks.OfAgent(ctx, org, a.ID)
	if err != nil {
		return prompt{}, err
	}
	metadata, err := s.metadata(ctx, org, a, c, m.tools)
	p := prompt{system: a.Instructions(m.tools), blocks: renderBlocks(blocks), rules: renderRules(a.Settings.ToolRules),
		directories: renderDirectories(directories, m), metadata: metadata}
	for _, d := range directories {
		for _, f := range d.Files {
			p.openChars += PromptChars(f.Text)
		}
	}
	return p, err
}

// metadata writes the section about memory that the model does not see. It counts only hidden messages: a count of all
// would change the prompt with every turn.
func (s *Store) metadata(ctx context.Context, org db.Org, a Agent, c recall.Conversation, tools []Definition) (string,
	error) {
	said, err := s.Recall.CountSaid(ctx, org, a.ID)
	if err != nil {
		return "", err
	}
	passages, err := s.Archival.CountPassages(ctx, org, a.ID)
	if err != nil {
		return "", err
	}
	name := c.ID
	if c.IsDefault {
		name = recall.DefaultConversation
	}
	text := fmt.Sprintf("<memory_metadata>\n- AGENT_ID: %s\n- CONVERSATION_ID: %s\n- System prompt last recompiled: %s\n",
		a.ID, name, a.UpdatedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	if hidden := said - visible(c); hidden > 0 {
		text += fmt.Sprintf("- %d previous messages are stored in recall memory%s\n", hidden,
			findWith(tools, "conversation_search"))
	}
	if passages > 0 {
		text += fmt.Sprintf("- %d passages are stored in archival memory%s\n", passages,
			findWith(tools, "archival_memory_search"))
	}
	return text + "- " + chat.FrameNote + "\n</memory_metadata>", nil
}

// findWith says that a tool finds what was counted, if it is among the tools.
func findWith(tools []Definition, name string) string {
	if !hasTool(tools, name) {
		return ""
	}
	return " (use " + name + " to find them)"
}

// visible returns how many messages a conversation has from the first visible one on, without its system prompts.
func visible(c recall.Conversation) int {
	n := c.Messages - c.FirstVisible + 1
	for _, position := range c.Prompts {
		if position >= c.FirstVisible {
			n--
		}
	}
	return max(n, 0)
}
