package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// page is a part of a list, and the item after which the next page begins; that is empty on the last page.
type page struct {
	items []*sdk.Resource
	after string
}

// listResources lists an agent's resources, one kind after the other.
func (s *Server) listResources(ctx context.Context, r *sdk.ListResourcesRequest) (*sdk.ListResourcesResult, error) {
	cursorText := ""
	if r.Params != nil {
		cursorText = r.Params.Cursor
	}
	lists := []func(context.Context, caller, string, int) (page, error){s.listBlocks, s.listMemory, s.listConversations,
		s.listFiles}
	scope := cursorScope(callerOf(ctx), "resources")
	position, err := parseCursor(cursorText, scope, len(lists))
	if err != nil {
		return nil, err
	}
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: uncached}
	for ; position.list < len(lists); position = (cursor{position.list + 1, ""}) {
		room := pageSize - len(out.Resources)
		if room == 0 {
			out.NextCursor = position.in(scope)
			break
		}
		p, err := lists[position.list](ctx, callerOf(ctx), position.after, room)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		out.Resources = append(out.Resources, p.items...)
		if p.after != "" {
			out.NextCursor = cursor{position.list, p.after}.in(scope)
			break
		}
	}
	return out, nil
}

func (s *Server) listBlocks(ctx context.Context, c caller, _ string, _ int) (p page, err error) {
	list, err := s.Blocks.OfAgent(ctx, c.Org, c.AgentID)
	for _, b := range list {
		r := &sdk.Resource{URI: uriOf(c.AgentID, place{blocks, []string{b.Label}}), Name: b.Label, MIMEType: plainText,
			Title: "Memory block " + b.Label, Size: int64(len(b.Value)), Annotations: changedAt(b.UpdatedAt)}
		if b.Description != nil {
			r.Description = *b.Description
		}
		p.items = append(p.items, r)
	}
	return p, err
}

func changedAt(t time.Time) *sdk.Annotations {
	return &sdk.Annotations{LastModified: t.UTC().Format(time.RFC3339)}
}

// listMemory lists the files of an agent's memory tree, sorted by path.
func (s *Server) listMemory(ctx context.Context, c caller, after string, room int) (p page, err error) {
	tree, err := s.MemoryFiles.OfAgent(ctx, c.Org, c.AgentID)
	if errors.Is(err, db.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	list, err := s.MemoryFiles.List(ctx, c.Org, tree.ID, memoryfile.Root, db.Held{})
	for _, f := range list {
		if f.Path <= after {
			continue
		}
		if len(p.items) == room {
			return page{p.items, p.items[room-1].Name}, nil
		}
		p.items = append(p.items, &sdk.Resource{URI: uriOf(c.AgentID, place{memory, partsOf(f.Path)}), Name: f.Path,
			Title: "Memory file " + f.Path, MIMEType: markdown, Size: int64(f.SizeBytes), Annotations: changedAt(f.UpdatedAt)})
	}
	return p, err
}

// partsOf returns the parts of a path.
func partsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// listConversations lists an agent's conversations, the default one first. Each summary follows its conversation.
func (s *Server) listConversations(ctx context.Context, c caller, after string, room int) (p page, err error) {
	if after == "" {
		p.items = append(p.items, conversationResource(c.AgentID, recall.Conversation{ID: recall.DefaultConversation}))
		room--
	}
	if room == 0 {
		return page{p.items, recall.DefaultConversation}, nil
	}
	previous := after
	if previous == recall.DefaultConversation {
		previous = ""
	}
	users, err := s.users(ctx, c.Caller)
	if err != nil {
		return p, err
	}
	list, err := s.Recall.Conversations(ctx, c.Org, recall.ConversationFilter{AgentID: c.AgentID, Users: users},
		db.Page{After: previous, Limit: room + 1})
	if err != nil {
		return p, err
	}
	for i, conversation := range list {
		if i == room {
			p.after = list[i-1].ID
			break
		}
		p.items = append(p.items, conversationResource(c.AgentID, conversation))
	}
	return p, nil
}

func conversationResource(agentID string, c recall.Conversation) *sdk.Resource {
	r := &sdk.Resource{URI: uriOf(agentID, place{conversations, []string{c.ID}}), Name: c.ID, MIMEType: plainText,
		Title: "Conversation " + c.ID}
	if c.ID == recall.DefaultConversation {
		r.Title = "Default conversation"
	}
	if c.Summary != nil {
		r.Description = *c.Summary
	}
	if c.LastMessageAt != nil {
		r.Annotations = changedAt(*c.LastMessageAt)
	}
	return r
}

// listFiles lists the files of an agent's folders, folder by folder.
func (s *Server) listFiles(ctx context.Context, c caller, after string, room int) (p page, err error) {
	attached, err := s.folders(ctx, c.Caller)
	if err != nil {
		return p, err
	}
	inFolder, afterFile, _ := strings.Cut(after, " ")
	for _, folder := range attached {
		if inFolder != "" && inFolder != folder.ID {
			continue
		}
		list, err := s.Files.Files(ctx, c.Org, files.Filter{FolderID: folder.ID}, false,
			db.Page{After: afterFile, Limit: room - len(p.items) + 1, Ascending: true})
		if err != nil {
			return p, err
		}
		inFolder, afterFile = "", ""
		for _, f := range list {
			if len(p.items) == room {
				p.after = lastFile(p, folder.ID)
				return p, nil
			}
			p.items = append(p.items, fileResource(c.AgentID, folder, f))
		}
	}
	return p, nil
}

// lastFile returns the position after the files of a page, in the folder that the next page begins with.
func lastFile(p page, folderID string) string {
	if n := len(p.items); n > 0 {
		if parts := strings.Split(p.items[n-1].URI, "/"); parts[len(parts)-2] == folderID {
			return folderID + " " + parts[len(parts)-1]
		}
	}
	return folderID + " "
}

func fileResource(agentID string, folder files.Folder, f files.File) *sdk.Resource {
	return &sdk.Resource{URI: uriOf(agentID, place{folders, []string{folder.ID, f.ID}}), Name: folder.Name + "/" + f.Name,
		Title: "File " + f.Name, Description: "The text of the file, " + f.MediaType + ".", MIMEType: plainText,
		Annotations: changedAt(f.UpdatedAt)}
}

// listTemplates lists the templates of URIs.
func (s *Server) listTemplates(r *sdk.ListResourceTemplatesRequest) (*sdk.ListResourceTemplatesResult, error) {
	if r.Params != nil && r.Params.Cursor != "" {
		return nil, errCursor
	}
	template := func(name, title, description, path, mediaType string) *sdk.ResourceTemplate {
		return &sdk.ResourceTemplate{Name: name, Title: title, Description: description,
			URITemplate: scheme + "{agent_id}/" + path, MIMEType: mediaType}
	}
	return &sdk.ListResourceTemplatesResult{Cacheable: uncached, ResourceTemplates: []*sdk.ResourceTemplate{
		template("block", "Memory block by its label", "", blocks+"/{label}", plainText),
		template("memory_file", "Memory file by its path",
			"path is that of the tools, such as /memories/notes.md; its first "+
				"slash may be left out.", memory+"/{+path}", markdown),
		template("conversation", "Newest messages of a conversation, by its id or default", conversationHas,
			conversations+"/{conversation_id}", plainText),
		template("conversation_summary", "Summary of what left a conversation's window", "", conversations+
			"/{conversation_id}/"+summary, plainText),
		template("file", "Text of a file by the ids of its folder and of the file", "", folders+"/{folder_id}/{file_id}",
			plainText),
	}}, nil
}

// conversationHas describes the content of a conversation's resource.
var conversationHas = fmt.Sprintf("Its newest %d messages of the user and the assistant, in at most 1 MiB of text.",
	shownMessages)

// readResource returns a resource of the caller's agent.
func (s *Server) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	text, mediaType, err := s.read(ctx, callerOf(ctx).Caller, r.Params.URI)
	if err != nil {
		return nil, s.notFound(ctx, r.Params.URI, err)
	}
	return &sdk.ReadResourceResult{Cacheable: uncached, Contents: []*sdk.ResourceContents{{URI: r.Params.URI,
		MIMEType: mediaType, Text: text}}}, nil
}
