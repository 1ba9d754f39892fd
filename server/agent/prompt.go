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

// DefaultSystem is the base instructions of an agent that was given none.
const DefaultSystem = `You are an agent with a memory of your own. Part of it stands below: what your documents are, ` +
	`and the views of them that you have open. Open a document with open_files to see it here; find text with ` +
	`grep_files and meaning with semantic_search_files. Only so many documents stay open: ` +
	`the one you used least recently is closed first, so keep open what you need.`

// prompt is the compiled system prompt in its parts. The part that changes most often comes last, so that a provider's
// cache of the beginning stays valid.
type prompt struct {
	system      string // the base instructions, as the operator wrote them
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
	p, err := s.compile(ctx, org, a, empty, a.Limits())
	return p.String(), err
}

// compile compiles the system prompt of a conversation; l bounds the views of open files.
func (s *Store) compile(ctx context.Context, org db.Org, a Agent, c recall.Conversation, l files.Limits) (prompt,
	error) {
	directories, err := s.Files.Directories(ctx, org, a.ID, l)
	if err != nil {
		return prompt{}, err
	}
	blocks, err := s.Blocks.OfAgent(ctx, org, a.ID)
	if err != nil {
		return prompt{}, err
	}
	metadata, err := s.metadata(ctx, org, a, c)
	p := prompt{system: a.System, blocks: renderBlocks(blocks), rules: renderRules(a.Settings.ToolRules),
		directories: renderDirectories(directories, l), metadata: metadata}
	for _, d := range directories {
		for _, f := range d.Files {
			p.openChars += PromptChars(f.Text)
		}
	}
	return p, err
}

// metadata writes the section about memory that the model does not see. It counts only hidden messages: a count of all
// would change the prompt with every turn.
func (s *Store) metadata(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (string, error) {
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
		text += fmt.Sprintf("- %d previous messages are stored in recall memory (use conversation_search to find them)\n",
			hidden)
	}
	if passages > 0 {
		text += fmt.Sprintf("- %d passages are stored in archival memory (use archival_memory_search to find them)\n",
			passages)
	}
	return text + "- " + chat.FrameNote + "\n</memory_metadata>", nil
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
