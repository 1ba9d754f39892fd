package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// read returns the text of a resource with its media type. ErrNotFound if the caller's agent has no such resource.
func (s *Server) read(ctx context.Context, c Caller, uri string) (text, mediaType string, err error) {
	at, ok := placeOf(c.AgentID, uri)
	switch {
	case !ok:
	case at.kind == blocks && len(at.path) == 1:
		b, err := s.Blocks.Labelled(ctx, c.Org, c.AgentID, at.path[0])
		return b.Value, plainText, err
	case at.kind == memory && len(at.path) > 0:
		text, err = s.readMemory(ctx, c, memoryPath(at))
		return text, markdown, err
	case at.kind == conversations && len(at.path) == 1:
		text, err = s.readConversation(ctx, c, at.path[0])
		return text, plainText, err
	case at.kind == conversations && len(at.path) == 2 && at.path[1] == summary:
		text, err = s.readSummary(ctx, c, at.path[0])
		return text, plainText, err
	case at.kind == folders && len(at.path) == 2:
		text, err = s.readFile(ctx, c, at.path[0], at.path[1])
		return text, plainText, err
	}
	return "", "", db.NotFound("there is no such resource")
}

// memoryPath returns the path of a memory file. A client may have escaped the slashes of its URI.
func memoryPath(at place) string { return "/" + strings.TrimPrefix(strings.Join(at.path, "/"), "/") }

func (s *Server) readMemory(ctx context.Context, c Caller, path string) (string, error) {
	tree, err := s.MemoryFiles.OfAgent(ctx, c.Org, c.AgentID)
	if err != nil {
		return "", err
	}
	f, err := s.MemoryFiles.File(ctx, c.Org, tree.ID, path)
	return f.Content, err
}

// shownMessages is how many messages the resource of a conversation shows.
const shownMessages = 50

// readConversation returns the newest messages of a conversation, oldest first.
func (s *Server) readConversation(ctx context.Context, c Caller, id string) (string, error) {
	if _, err := s.Recall.Conversation(ctx, c.Org, c.AgentID, id); err != nil {
		return "", err
	}
	list, err := s.Recall.Messages(ctx, c.Org, recall.MessageFilter{AgentID: c.AgentID, Conversation: id,
		Roles: []recall.Role{recall.User, recall.Assistant}}, db.Page{Limit: shownMessages})
	slices.Reverse(list)
	if err != nil || len(list) > 0 {
		return said(list, maxResourceBytes), err
	}
	return "Nothing was said in this conversation yet.", nil
}

// said shows the newest messages, each with its time and its role, in at most so many bytes of text. One that does not
// fit is cut; those before it are left out, and the first line says how many.
func said(list []recall.Message, most int) string {
	var shown []string
	left := 0
	for _, m := range slices.Backward(list) {
		text := strings.TrimSpace(m.Text())
		if text == "" {
			continue
		}
		if most <= 0 {
			left++
			continue
		}
		if len(text) > most {
			text = db.Beginning(text, most) + fmt.Sprintf(frame.MessageShortened, most, len(text), strconv.Quote(m.ID))
		}
		most -= len(text)
		shown = append(shown, fmt.Sprintf("[%s] %s: %s\n", m.CreatedAt.UTC().Format(time.RFC3339), m.Role, text))
	}
	if left > 0 {
		shown = append(shown, fmt.Sprintf(frame.MessagesLeftOut+" The "+
			"tools conversation_search and expand read them.]\n", left, len(shown)+left))
	}
	slices.Reverse(shown)
	return strings.Join(shown, "\n")
}

// readSummary returns the summary that a conversation's window begins with, or that there is none.
func (s *Server) readSummary(ctx context.Context, c Caller, id string) (string, error) {
	of, err := s.Recall.Conversation(ctx, c.Org, c.AgentID, id)
	if err != nil {
		return "", err
	}
	made, err := s.Agents.Compaction.Latest(ctx, c.Org, of)
	if errors.Is(err, db.ErrNotFound) || err == nil && made.Summary == nil {
		return "There is no summary: all that was said is in the window.", nil
	}
	if err != nil {
		return "", err
	}
	return *made.Summary, nil
}

// maxFileBytes bounds the files whose text is read whole.
const maxFileBytes = 16 << 20

// readFile returns the text of a file in a folder of the agent's.
func (s *Server) readFile(ctx context.Context, c Caller, folderID, fileID string) (string, error) {
	attached, err := s.Files.AgentFolders(ctx, c.Org, c.AgentID, db.Page{Limit: maxFolders, Ascending: true})
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(attached, func(f files.Folder) bool { return f.ID == folderID }) {
		return "", db.NotFound("there is no such resource")
	}
	f, err := s.Files.File(ctx, c.Org, folderID, fileID, false)
	if err != nil {
		return "", err
	}
	if f.SizeBytes > maxFileBytes {
		return "", tooLong(f.Name)
	}
	f, err = s.Files.File(ctx, c.Org, folderID, fileID, true)
	if err != nil {
		return "", err
	}
	if f.Content == nil {
		return "", nil
	}
	if len(*f.Content) > maxResourceBytes {
		return "", tooLong(f.Name)
	}
	return *f.Content, nil
}

const (
	plainText = "text/plain"
	markdown  = "text/markdown"
)

// maxFolders bounds the folders whose files are listed.
const maxFolders = 1000

// maxResourceBytes bounds the text of a resource.
const maxResourceBytes = 1 << 20

func tooLong(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: what + " has more than 1,048,576 bytes of text, the " +
		"most of a resource: read it in parts with the tools open_files, grep_files and semantic_search_files"}
}
