package agent

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// DefaultSystem are the base instructions of an agent that was given none.
const DefaultSystem = `You are an agent with a memory of your own. Part of it stands below: what your documents are, and the views of ` +
	`them that you have open. Open a document with open_files to see it here; find text with grep_files and meaning with ` +
	`semantic_search_files. Only so many documents stay open: the one you used least recently is closed first, so keep open what you need.`

// prompt is the compiled system prompt in its parts, in their order; what changes most often comes last, so that what a provider keeps of a
// prompt's beginning stays good.
type prompt struct {
	system      string // the base instructions, as the operator wrote them
	blocks      string // empty where no block is attached
	rules       string // empty where no tool has one
	directories string // empty where no folder is attached
	metadata    string

	openChars int // of the directories, those of the views of open files
}

// parts are the texts whose concatenation is the prompt.
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

// SystemPrompt compiles what the model is told before the conversation. The same state gives the same bytes.
func (s *Store) SystemPrompt(ctx context.Context, org db.Org, a Agent) (string, error) {
	p, err := s.compile(ctx, org, a, recall.Conversation{IsDefault: true, ContextView: recall.ContextView{FirstVisible: 1}}, a.Limits())
	return p.String(), err
}

// compile compiles the system prompt for a conversation; l bounds what it shows of open files.
func (s *Store) compile(ctx context.Context, org db.Org, a Agent, c recall.Conversation, l files.Limits) (prompt, error) {
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

// metadata says what there is beside what the model sees. Of messages it counts those that are not in view: each turn adds one to the view,
// and would otherwise change the prompt before it.
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
		text += fmt.Sprintf("- %d previous messages are stored in recall memory (use conversation_search to find them)\n", hidden)
	}
	if passages > 0 {
		text += fmt.Sprintf("- %d passages are stored in archival memory (use archival_memory_search to find them)\n", passages)
	}
	return text + "</memory_metadata>", nil
}

// visible is how many messages of a conversation stand from the first visible one on, its system prompts aside.
func visible(c recall.Conversation) int {
	n := c.Messages - c.FirstVisible + 1
	for _, position := range c.Prompts {
		if position >= c.FirstVisible {
			n--
		}
	}
	return max(n, 0)
}

// FileBlocks shows the files of an agent's prompt as blocks: the open ones with what the model sees, then the closed ones.
func (s *Store) FileBlocks(ctx context.Context, org db.Org, a Agent) ([]FileBlock, error) {
	directories, err := s.Files.Directories(ctx, org, a.ID, a.Limits())
	if err != nil {
		return nil, err
	}
	blocks := []FileBlock{}
	for _, d := range directories {
		for _, f := range d.Files {
			blocks = append(blocks, FileBlock{ID: strings.Replace(f.FileID, "file-", "block-", 1), Label: f.FileName, Value: f.Text,
				Limit: a.Limits().ViewChars, ReadOnly: true, FileID: f.FileID, SourceID: d.Folder.ID, IsOpen: f.IsOpen,
				LastAccessedAt: f.LastUsedAt})
		}
	}
	return blocks, nil
}

// renderDirectories writes the section of the prompt that shows folders and open files, in Letta's layout. Every name and text is
// escaped, so that a document cannot end its place in it.
func renderDirectories(directories []files.Directory, l files.Limits) string {
	if len(directories) == 0 {
		return ""
	}
	var b strings.Builder
	open := 0
	for _, d := range directories {
		for _, f := range d.Files {
			if f.IsOpen {
				open++
			}
		}
	}
	fmt.Fprintf(&b, "<directories>\n<file_limits>\n- current_files_open=%d\n- max_files_open=%d\n</file_limits>\n", open, l.MaxOpen)
	for _, d := range directories {
		renderDirectory(&b, d, l)
	}
	b.WriteString("</directories>")
	return b.String()
}

func renderDirectory(b *strings.Builder, d files.Directory, l files.Limits) {
	fmt.Fprintf(b, "<directory name=\"%s\">\n", escapeName(d.Folder.Name))
	if d.Folder.Description != nil {
		fmt.Fprintf(b, "<description>%s</description>\n", escape(*d.Folder.Description))
	}
	if d.Folder.Instructions != nil {
		fmt.Fprintf(b, "<instructions>%s</instructions>\n", escape(*d.Folder.Instructions))
	}
	for _, f := range d.Files {
		renderFile(b, f, l)
	}
	if d.More > 0 {
		fmt.Fprintf(b, "<more_files>%d more closed files are not listed: call list_files</more_files>\n", d.More)
	}
	b.WriteString("</directory>\n")
}

func renderFile(b *strings.Builder, f files.DirectoryFile, l files.Limits) {
	status := "closed"
	if f.IsOpen {
		status = "open"
	}
	fmt.Fprintf(b, "<file status=\"%s\" name=\"%s\">\n<metadata>\n- read_only=true\n- chars_current=%d\n- chars_limit=%d\n</metadata>\n",
		status, escapeName(f.FileName), utf8.RuneCountInString(f.Text), l.ViewChars)
	if f.IsOpen {
		fmt.Fprintf(b, "<value>\n%s\n</value>\n", escape(f.Text))
	}
	b.WriteString("</file>\n")
}

// marks are the characters that open or close structure, and those that begin a line without being the end of a file's line.
var marks = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;",
	"\r", " ", "\v", " ", "\f", " ", "\u0085", " ", "\u2028", " ", "\u2029", " ")

// escape leaves no mark in a text, and nothing that XML does not know; escapeName leaves none in an attribute.
func escape(text string) string {
	if strings.ContainsFunc(text, isUnknown) {
		text = strings.Map(func(r rune) rune {
			if isUnknown(r) {
				return utf8.RuneError
			}
			return r
		}, text)
	}
	return marks.Replace(text)
}

// isUnknown tells the characters that XML does not have, but for those that are marks.
func isUnknown(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\v' && r != '\f' || r == '\uFFFE' || r == '\uFFFF'
}

// PromptChars counts the characters that a text takes in a prompt, escaped; it is what files.Options.PromptChars asks for.
func PromptChars(text string) int { return utf8.RuneCountInString(escape(text)) }

func escapeName(name string) string { return strings.ReplaceAll(escape(name), `"`, "&quot;") }
