package agent

import (
	"cmp"
	"context"
	"encoding/json"
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

// charsPerToken is the estimate that all counts here go by.
const charsPerToken = 4

func tokens(text string) int {
	return (utf8.RuneCountInString(text) + charsPerToken - 1) / charsPerToken
}

// prompt is the compiled system prompt in its parts, in their order.
type prompt struct {
	system      string
	blocks      string // empty where no block is attached
	directories string // empty where no folder is attached
	metadata    string
}

func (p prompt) String() string {
	parts := []string{p.system}
	for _, part := range []string{p.blocks, p.directories, p.metadata} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

// SystemPrompt compiles what the model is told before the conversation. The same state gives the same bytes.
func (s *Store) SystemPrompt(ctx context.Context, org db.Org, a Agent) (string, error) {
	p, err := s.compile(ctx, org, a, recall.DefaultConversation)
	return p.String(), err
}

func (s *Store) compile(ctx context.Context, org db.Org, a Agent, conversation string) (prompt, error) {
	directories, err := s.Files.Directories(ctx, org, a.ID, a.Limits())
	if err != nil {
		return prompt{}, err
	}
	blocks, err := s.Blocks.OfAgent(ctx, org, a.ID)
	if err != nil {
		return prompt{}, err
	}
	metadata, err := s.metadata(ctx, org, a, conversation)
	return prompt{system: a.System, blocks: renderBlocks(blocks), directories: renderDirectories(directories, a.Limits()), metadata: metadata}, err
}

// metadata is what changes with every message, and so comes last: what a provider keeps of a prompt's beginning stays good.
func (s *Store) metadata(ctx context.Context, org db.Org, a Agent, conversation string) (string, error) {
	messages, err := s.Recall.Said(ctx, org, a.ID)
	if err != nil {
		return "", err
	}
	passages, err := s.Archival.CountPassages(ctx, org, a.ID)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("<memory_metadata>\n- AGENT_ID: %s\n- CONVERSATION_ID: %s\n- System prompt last recompiled: %s\n",
		a.ID, conversation, a.UpdatedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	if messages > 0 {
		text += fmt.Sprintf("- %d previous messages are stored in recall memory (use conversation_search to find them)\n", messages)
	}
	if passages > 0 {
		text += fmt.Sprintf("- %d passages are stored in archival memory (use archival_memory_search to find them)\n", passages)
	}
	return text + "</memory_metadata>", nil
}

// Overview counts what fills the agent's window in a conversation (the default one if it is empty), whose messages it leaves to the caller
// to show; functions are the definitions that its model is given. The messages' tokens are those that were counted when they were appended.
func (s *Store) Overview(ctx context.Context, org db.Org, a Agent, conversation string, functions []any) (Overview, recall.Window, error) {
	p, err := s.compile(ctx, org, a, cmp.Or(conversation, recall.DefaultConversation))
	if err != nil {
		return Overview{}, recall.Window{}, err
	}
	window, err := s.Recall.Window(ctx, org, a.ID, conversation)
	if err != nil {
		return Overview{}, recall.Window{}, err
	}
	total, err := s.Recall.Total(ctx, org, a.ID)
	if err != nil {
		return Overview{}, recall.Window{}, err
	}
	definitions, err := json.Marshal(functions)
	if err != nil {
		return Overview{}, recall.Window{}, err
	}
	passages, err := s.Archival.CountPassages(ctx, org, a.ID)
	if err != nil {
		return Overview{}, recall.Window{}, err
	}
	o := Overview{NumArchivalMemory: passages, WindowMax: a.Window(), SystemPrompt: p.String(), TokensSystem: tokens(p.system + p.metadata),
		CoreMemory: p.blocks, TokensCoreMemory: tokens(p.blocks),
		TokensDirectories: tokens(p.directories), FunctionsDefinitions: functions, Messages: []any{}, NumMessages: window.Count,
		TokensMessages: window.Tokens, NumRecallMemory: total}
	if p.directories != "" {
		o.Directories = &p.directories
	}
	if len(functions) > 0 {
		o.TokensFunctions = tokens(string(definitions))
	}
	o.WindowCurrent = o.TokensSystem + o.TokensCoreMemory + o.TokensDirectories + o.TokensFunctions + o.TokensMessages
	return o, window, nil
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

// escape leaves no character in a text that opens or closes structure, or begins a line without being the end of a file's line; escapeName
// leaves none in an attribute.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;",
		"\r", " ", "\v", " ", "\f", " ", "\u0085", " ", "\u2028", " ", "\u2029", " ").Replace(text)
}

// Measure counts the characters that a text takes in a prompt, escaped; it is what files.Options.Measure asks for.
func Measure(text string) int { return utf8.RuneCountInString(escape(text)) }

func escapeName(name string) string { return strings.ReplaceAll(escape(name), `"`, "&quot;") }
