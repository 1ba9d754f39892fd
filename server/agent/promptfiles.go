package agent

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// FileBlocks returns the files of an agent's prompt as blocks: of each folder the open ones, then the closed ones.
func (s *Store) FileBlocks(ctx context.Context, org db.Org, a Agent) ([]FileBlock, error) {
	directories, err := s.Files.Directories(ctx, org, a.ID, a.Limits())
	if err != nil {
		return nil, err
	}
	blocks := []FileBlock{}
	for _, d := range directories {
		for _, f := range d.Files {
			blocks = append(blocks, FileBlock{ID: strings.Replace(f.FileID, "file-", "block-", 1), Label: f.FileName,
				Value: f.Text,
				Limit: a.Limits().ViewChars, ReadOnly: true, FileID: f.FileID, SourceID: d.Folder.ID, IsOpen: f.IsOpen,
				LastAccessedAt: f.LastUsedAt})
		}
	}
	return blocks, nil
}

// renderDirectories writes the section of the prompt that shows folders and open files, in Letta's layout. Names and
// texts are escaped, so that no document can end its section.
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
	fmt.Fprintf(&b, "<directories>\n<file_limits>\n- current_files_open=%d\n- max_files_open=%d\n</file_limits>\n", open,
		l.MaxOpen)
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
	fmt.Fprintf(b, "<file status=\"%s\" name=\"%s\">\n<metadata>\n- read_only=true\n- chars_current=%d\n- "+
		"chars_limit=%d\n</metadata>\n",
		status, escapeName(f.FileName), utf8.RuneCountInString(f.Text), l.ViewChars)
	if f.IsOpen {
		fmt.Fprintf(b, "<value>\n%s\n</value>\n", escape(f.Text))
	}
	b.WriteString("</file>\n")
}

// marks replaces the characters of markup, and those that look like line ends but do not end a line of a file.
var marks = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;",
	"\r", " ", "\v", " ", "\f", " ", "\u0085", " ", "\u2028", " ", "\u2029", " ")

// escape returns a text without markup and without characters that XML forbids.
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

// isUnknown reports whether XML forbids a character that marks does not replace.
func isUnknown(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\v' && r != '\f' || r == '\uFFFE' || r == '\uFFFF'
}

// PromptChars counts the characters that a text takes in a prompt, escaped; it is what files.Options.PromptChars asks
// for.
func PromptChars(text string) int { return utf8.RuneCountInString(escape(text)) }

// escapeName escapes the value of an attribute.
func escapeName(name string) string { return strings.ReplaceAll(escape(name), `"`, "&quot;") }
