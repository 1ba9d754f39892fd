package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// followed is a resource whose changes clients are told.
type followed struct {
	kind string
	sum  [sha256.Size]byte // of the text that was read last
	by   map[*sdk.ServerSession]int
}

// maxFollowed bounds the resources that the sessions of a hub follow.
const maxFollowed = 1000

// subscribe follows a resource for a session. It is an error if the resource does not exist.
func (s *Server) subscribe(ctx context.Context, h *hub, r *sdk.SubscribeRequest) error {
	if s.Fixtures != nil {
		return nil
	}
	if h == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "subscribe in a session, which initialize begins"}
	}
	c := callerOf(ctx).Caller
	sum, err := s.sum(ctx, c, r.Params.URI)
	if err != nil {
		return s.notFound(ctx, r.Params.URI, err)
	}
	at, _ := placeOf(c.AgentID, r.Params.URI)
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.followed[r.Params.URI]
	if f == nil && len(h.followed) == maxFollowed {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "1,000 resources are followed, the most of a key " +
			"for an agent: unsubscribe from some"}
	}
	if f == nil {
		f = &followed{at.kind, sum, map[*sdk.ServerSession]int{}}
		h.followed[r.Params.URI] = f
	}
	f.by[r.Session]++
	return nil
}

// unsubscribe ends what subscribe began.
func (s *Server) unsubscribe(h *hub, r *sdk.UnsubscribeRequest) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.followed[r.Params.URI]; f != nil {
		if f.by[r.Session]--; f.by[r.Session] <= 0 {
			h.forget(r.Params.URI, r.Session)
		}
	}
	return nil
}

// forget ends a session's interest in a resource. h.mu is held.
func (h *hub) forget(uri string, session *sdk.ServerSession) {
	f := h.followed[uri]
	if delete(f.by, session); len(f.by) == 0 {
		delete(h.followed, uri)
	}
}

// forgetAll ends the interests of a session that has ended.
func (h *hub) forgetAll(session *sdk.ServerSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uri := range h.followed {
		h.forget(uri, session)
	}
}

// sum returns a digest of the text of a resource.
func (s *Server) sum(ctx context.Context, c Caller, uri string) ([sha256.Size]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	text, _, err := s.read(ctx, c, uri)
	return sha256.Sum256([]byte(text)), err
}

// effect is what an event may change.
type effect struct {
	kind   string // of resources, whose texts may be others
	lists  bool   // lists may be others
	folder bool   // a folder came or went: clients are told that both lists are others
}

var effects = map[event.Type]effect{
	event.AgentUpdated:       {lists: true},
	event.FolderAttached:     {folders, true, true},
	event.FolderDetached:     {folders, true, true},
	event.MessageAppended:    {kind: conversations},
	event.BlockAttached:      {blocks, true, false},
	event.BlockDetached:      {blocks, true, false},
	event.BlockChanged:       {blocks, true, false},
	event.MemoryTreeAttached: {kind: memory},
	event.MemoryTreeDetached: {kind: memory},
	event.MemoryFileChanged:  {kind: memory},
	event.Compacted:          {kind: conversations},
	event.CompactionReverted: {kind: conversations},
}

// changed tells a hub's clients which resources events changed, and reports whether they may have changed lists, and
// whether a folder came or went. If a look at all is due, it looks at files and conversations, too, which change
// without an event.
func (s *Server) changed(ctx context.Context, h *hub, events []event.Event, due bool) (otherLists, folder bool) {
	kinds := map[string]bool{folders: due, conversations: due}
	for _, e := range events {
		does := effects[e.Type]
		kinds[does.kind] = true
		otherLists, folder = otherLists || does.lists, folder || does.folder
	}
	if kinds[memory] {
		listChanged(h.server)
	}
	for uri, kind := range h.uris() {
		if kinds[kind] && s.isOther(ctx, h, uri) {
			_ = h.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // it is always nil
		}
	}
	return otherLists, folder
}

// uris returns the resources that are followed, with their kinds.
func (h *hub) uris() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]string{}
	for uri, f := range h.followed {
		all[uri] = f.kind
	}
	return all
}

// isOther reports whether a resource is not as it was when it was read last. One that is gone has no text.
func (s *Server) isOther(ctx context.Context, h *hub, uri string) bool {
	sum, err := s.sum(ctx, Caller{Org: h.org, AgentID: h.agentID}, uri)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		s.Log.WarnContext(ctx, "read a resource that is followed over MCP", "agent", h.agentID, "error", err)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.followed[uri]
	if f == nil || f.sum == sum {
		return false
	}
	f.sum = sum
	return true
}

// toolsChanged tells the sessions of a server that their tools may be others. The SDK does so where a tool is added;
// its own list is shown to nobody.
func toolsChanged(server *sdk.Server) {
	server.AddTool(&sdk.Tool{Name: "changed", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, errCursor })
}

// listChanged tells the sessions that the list of resources may be another.
func listChanged(server *sdk.Server) {
	server.AddResource(&sdk.Resource{URI: scheme + "changed", Name: "changed"},
		func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, noResource(ctx, r.Params.URI)
		})
}

// LastEvent is what the server ends an open answer to a message with, and why: an error that answers the message or,
// where there is none that waits, a comment. The stream of a session has no answers.
func LastEvent(body []byte, sentence string) string {
	all, ok := messagesIn(body)
	if !ok || len(all) != 1 || !all[0].isCall() {
		return ": " + sentence + "\n\n"
	}
	text, err := json.Marshal(invalid(all[0].id, "%s", sentence).message())
	if err != nil { // it has no value that JSON lacks
		return ""
	}
	return "event: message\ndata: " + string(text) + "\n\n"
}
