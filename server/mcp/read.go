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

// read returns a resource's text and media type. ErrNotFound if the caller's agent has no such resource.
func (s *Server) read(ctx context.Context, c Caller, uri string) (text, mediaType string, err error) {
	place, ok := placeOf(c.AgentID, uri)
	switch {
	case !ok:
	case place.kind == blocks && len(place.path) == 1:
		b, err := s.Blocks.Labelled(ctx, c.Org, c.AgentID, place.path[0])
		return b.Value, plainText, err
	case place.kind == memory && len(place.path) > 0:
		text, err = s.readMemory(ctx, c, memoryPath(place))
		return text, markdown, err
	case place.kind == conversations && len(place.path) == 1:
		text, err = s.readConversation(ctx, c, place.path[0])
		return text, plainText, err
	case place.kind == conversations && len(place.path) == 2 && place.path[1] == summary:
		text, err = s.readSummary(ctx, c, place.path[0])
		return text, plainText, err
	case place.kind == folders && len(place.path) == 2:
		text, err = s.readFile(ctx, c, place.path[0], place.path[1])
		return text, plainText, err
	}
	return "", "", db.NotFound("there is no such resource")
}

// memoryPath returns the path of a memory file. Clients may have escaped the slashes in its URI.
func memoryPath(at place) string { return "/" + strings.TrimPrefix(strings.Join(at.path, "/"), "/") }

func (s *Server) readMemory(ctx context.Context, c Caller, path string) (string, error) {
	tree, err := s.MemoryFiles.OfAgent(ctx, c.Org, c.AgentID)
	if err != nil {
		return "", err
	}
	f, err := s.MemoryFiles.File(ctx, c.Org, tree.ID, path)
	return f.Content, err
}

// conversation returns a conversation of the caller's agent. ErrNotFound if it is with another user.
func (s *Server) conversation(ctx context.Context, c Caller, id string) (recall.Conversation, error) {
	users, err := s.users(ctx, c)
	if err != nil {
		return recall.Conversation{}, err
	}
	return s.Recall.ConversationIn(db.WithUser(ctx, c.User), c.Org, c.AgentID,
		recall.Reach{Conversation: id, Users: users})
}

// shownMessages is how many messages a conversation's resource shows.
const shownMessages = 50

// readConversation returns the newest messages of a conversation, the oldest of them first.
func (s *Server) readConversation(ctx context.Context, c Caller, id string) (string, error) {
	if _, err := s.conversation(ctx, c, id); err != nil {
		return "", err
	}
	list, err := s.Recall.Messages(db.WithUser(ctx, c.User), c.Org, recall.MessageFilter{AgentID: c.AgentID,
		Conversation: id,
		Roles:        []recall.Role{recall.User, recall.Assistant}}, db.Page{Limit: shownMessages})
	slices.Reverse(list)
	if err != nil || len(list) > 0 {
		return said(list, maxResourceBytes), err
	}
	return "Nothing was said in this conversation yet.", nil
}

// said shows the newest messages with time and role, in at most maxBytes bytes. A message that does not fit is cut.
// Messages before it are left out, and the first line says how many.
func said(list []recall.Message, maxBytes int) string {
	var lines []string
	omitted := 0
	for _, m := range slices.Backward(list) {
		text := strings.TrimSpace(m.Text())
		if text == "" {
			continue
		}
		if maxBytes <= 0 {
			omitted++
			continue
		}
		if len(text) > maxBytes {
			text = db.Beginning(text, maxBytes) + fmt.Sprintf(frame.MessageShortened, maxBytes, len(text), strconv.Quote(m.ID))
		}
		maxBytes -= len(text)
		lines = append(lines, fmt.Sprintf("[%s] %s: %s\n", m.CreatedAt.UTC().Format(time.RFC3339), m.Role, text))
	}
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf(frame.MessagesLeftOut+" The "+
			"tools conversation_search and expand read them.]\n", omitted, len(lines)+omitted))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// readSummary returns the summary with which a conversation's window begins, or a sentence that there is none.
func (s *Server) readSummary(ctx context.Context, c Caller, id string) (string, error) {
	conversation, err := s.conversation(ctx, c, id)
	if err != nil {
		return "", err
	}
	latest, err := s.Agents.Compaction.Latest(ctx, c.Org, conversation)
	if errors.Is(err, db.ErrNotFound) || err == nil && latest.Summary == nil {
		return "There is no summary: all that was said is in the window.", nil
	}
	if err != nil {
		return "", err
	}
	return *latest.Summary, nil
}

// maxFileBytes is the largest file that is read as a resource.
const maxFileBytes = 16 << 20

// folders returns the folders of the caller's agent whose files the caller reads.
func (s *Server) folders(ctx context.Context, c Caller) ([]files.Folder, error) {
	users, err := s.users(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.Files.AgentFolders(ctx, c.Org, files.Reach{AgentID: c.AgentID, Users: users},
		db.Page{Limit: maxFolders, Ascending: true})
}

// readFile returns the text of a file in one of the agent's folders.
func (s *Server) readFile(ctx context.Context, c Caller, folderID, fileID string) (string, error) {
	attached, err := s.folders(ctx, c)
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

// maxFolders bounds how many folders are searched for files.
const maxFolders = 1000

// maxResourceBytes bounds the text of a resource.
const maxResourceBytes = 1 << 20

func tooLong(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: what + " has more than 1,048,576 bytes of text, the " +
		"most of a resource: read it in parts with the tools open_files, grep_files and semantic_search_files"}
}
