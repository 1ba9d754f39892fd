package agent

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Folders returns which files of its folders the agent sees in a conversation.
func (a Agent) Folders(c recall.Conversation) files.Reach {
	return files.Reach{AgentID: a.ID, Users: a.Users(c)}
}

// foldersFor returns which files of its folders the agent sees where ctx works for a user, or for nobody.
func (a Agent) foldersFor(ctx context.Context) files.Reach {
	return a.Folders(recall.Conversation{UserKey: db.UserOf(ctx)})
}

// FileBlocks returns the files in an agent's prompt as blocks: folder by folder, first the open files and then the
// closed ones.
func (s *Store) FileBlocks(ctx context.Context, org db.Org, a Agent) ([]FileBlock, error) {
	directories, err := s.Files.Directories(ctx, org, files.Of(a.ID), a.Limits())
	if err != nil {
		return nil, err
	}
	blocks := []FileBlock{}
	for _, d := range directories {
		for _, f := range d.Files {
			blocks = append(blocks, FileBlock{ID: strings.Replace(f.FileID, "file-", "block-", 1), Label: f.FileName,
				Value: f.Text, Limit: a.Limits().ViewChars, ReadOnly: true, FileID: f.FileID, SourceID: d.Folder.ID,
				IsOpen: f.IsOpen, LastAccessedAt: f.LastUsedAt})
		}
	}
	return blocks, nil
}

// directories returns the agent's folders within a reach, with what its prompt shows of their files.
func (s *Store) directories(ctx context.Context, org db.Org, r files.Reach, m promptMeans) ([]files.Directory, error) {
	if !m.hasFolder {
		return nil, nil
	}
	found, err := s.Files.Directories(ctx, org, r, m.limits)
	if m.withoutFiles {
		leaveOutTexts(found)
	}
	return found, err
}

// renderDirectories writes the section of the prompt with folders and open files, in Letta's layout. Names and texts
// are neutralized, so that no document can end its section.
func renderDirectories(directories []files.Directory, m promptMeans) string {
	if len(directories) == 0 {
		return ""
	}
	var b strings.Builder
	open, more := 0, 0
	for _, d := range directories {
		for _, f := range d.Files {
			if f.IsOpen {
				open++
			}
		}
	}
	fmt.Fprintf(&b, "<directories>\n<file_limits>\n- current_files_open=%d\n- max_files_open=%d\n</file_limits>\n", open,
		m.limits.MaxOpen)
	for _, d := range directories {
		renderDirectory(&b, d, m.limits)
		more += d.More
	}
	if more > 0 {
		hint := toolset(m.tools).Hint("list_files", ": call list_files")
		fmt.Fprintf(&b, "<more_files>%d more closed files are not listed%s</more_files>\n", more, hint)
	}
	b.WriteString("</directories>")
	return b.String()
}

func renderDirectory(b *strings.Builder, d files.Directory, l files.Limits) {
	fmt.Fprintf(b, "<directory name=\"%s\">\n", attribute(d.Folder.Name))
	if d.Folder.Description != nil {
		fmt.Fprintf(b, "<description>%s</description>\n", frame.Neutralize(*d.Folder.Description))
	}
	if d.Folder.Instructions != nil {
		fmt.Fprintf(b, "<instructions>%s</instructions>\n", frame.Neutralize(*d.Folder.Instructions))
	}
	for _, f := range d.Files {
		renderFile(b, f, l)
	}
	b.WriteString("</directory>\n")
}

// leaveOutTexts replaces the texts of open files by a note.
func leaveOutTexts(directories []files.Directory) {
	for _, d := range directories {
		for i := range d.Files {
			if d.Files[i].IsOpen {
				d.Files[i].Shown = frame.System + " The model's provider refuses the prompt with the texts of the open files. " +
					"They are left out of this prompt. Close the file that it refuses."
			}
		}
	}
}

// closedFile matches the line of a closed file in a prompt. Its group is the file's name.
var closedFile = regexp.MustCompile(`(?m)^<file status="closed" name="([^"]*)"/>$`)

// closedInFull writes closed files as Letta does.
func closedInFull(directories string, l files.Limits) string {
	return closedFile.ReplaceAllString(directories, fmt.Sprintf("<file status=\"closed\" name=\"$1\">\n<metadata>\n"+
		"- read_only=true\n- chars_current=0\n- chars_limit=%d\n</metadata>\n</file>", l.ViewChars))
}

func renderFile(b *strings.Builder, f files.DirectoryFile, l files.Limits) {
	if !f.IsOpen {
		fmt.Fprintf(b, "<file status=\"closed\" name=\"%s\"/>\n", attribute(f.FileName))
		return
	}
	fmt.Fprintf(b, "<file status=\"open\" name=\"%s\">\n<metadata>\n- read_only=true\n- chars_current=%d\n- "+
		"chars_limit=%d\n</metadata>\n<value>\n%s\n</value>\n</file>\n",
		attribute(f.FileName), utf8.RuneCountInString(f.Text), cmp.Or(f.LimitChars, l.ViewChars), f.Shown)
}
