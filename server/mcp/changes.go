package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// subscribe follows a resource for a session. It is an error if the resource does not exist.
func (s *Server) subscribe(ctx context.Context, h *hub, r *sdk.SubscribeRequest) error {
	if s.Fixtures != nil {
		return nil
	}
	if h == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "subscribe in a session, which initialize begins"}
	}
	if h.follows(r.Params.URI, r.Session) {
		return h.add(r.Params.URI, [sha256.Size]byte{}, r.Session)
	}
	sum, err := s.sum(ctx, callerOf(ctx).Caller, r.Params.URI)
	if err != nil {
		return s.notFound(ctx, r.Params.URI, err)
	}
	return h.add(r.Params.URI, sum, r.Session)
}

// subscribeAll makes a session follow resources. It returns those that it follows, also with an error; it passes over
// resources that do not exist.
func (s *Server) subscribeAll(ctx context.Context, h *hub, session *sdk.ServerSession, uris []string) (found []string,
	err error) {
	if s.Fixtures != nil {
		return uris, nil
	}
	sums, err := s.sums(ctx, callerOf(ctx).Caller, uris)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	for _, uri := range uris {
		sum, ok := sums[uri]
		if !ok {
			continue
		}
		if err := h.add(uri, sum, session); err != nil {
			return found, err
		}
		found = append(found, uri)
	}
	return found, nil
}

// follows reports whether a session follows a resource.
func (h *hub) follows(uri string, session *sdk.ServerSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.followed[uri]
	return f != nil && f.by[session] > 0
}

// add follows a resource for a session once more. sum is of its text, if no session follows it yet.
func (h *hub) add(uri string, sum [sha256.Size]byte, session *sdk.ServerSession) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.followed[uri]
	if f == nil && len(h.followed) == maxFollowed {
		return wrong("%s", tooManyFollowed)
	}
	if f == nil {
		at, _ := placeOf(h.agentID, uri)
		f = &followed{at.kind, sum, map[*sdk.ServerSession]int{}}
		h.followed[uri] = f
	}
	f.by[session]++
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

// readAtOnce is how many resources are read at the same time.
const readAtOnce = 4

// sums returns the digests of the texts of resources by their URIs, without those that cannot be read. Blocks and
// memory files are read together, others one by one.
func (s *Server) sums(ctx context.Context, c Caller, uris []string) (map[string][sha256.Size]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	of := map[string]func(context.Context, Caller) (map[string][sha256.Size]byte, error){blocks: s.blockSums,
		memory: s.memorySums}
	together := map[string]map[string][sha256.Size]byte{}
	sums := map[string][sha256.Size]byte{}
	var mu sync.Mutex
	others, reading := errgroup.WithContext(ctx)
	others.SetLimit(readAtOnce)
	for _, uri := range uris {
		at, ok := placeOf(c.AgentID, uri)
		if !ok {
			continue
		}
		if read := of[at.kind]; read != nil {
			if together[at.kind] == nil {
				all, err := read(ctx, c)
				if err != nil {
					return nil, errors.Join(err, others.Wait())
				}
				together[at.kind] = all
			}
			if sum, ok := together[at.kind][nameOf(at)]; ok {
				mu.Lock()
				sums[uri] = sum
				mu.Unlock()
			}
			continue
		}
		others.Go(func() error {
			text, _, err := s.read(reading, c, uri)
			if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrInvalid) || isRefusal(err) {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			sums[uri] = sha256.Sum256([]byte(text))
			return nil
		})
	}
	return sums, others.Wait()
}

// nameOf returns the label of a block or the path of a memory file; empty if it is neither.
func nameOf(at place) string {
	if at.kind == blocks && len(at.path) == 1 {
		return at.path[0]
	}
	if path, err := memoryfile.ParseFile(memoryPath(at)); at.kind == memory && err == nil {
		return path
	}
	return ""
}

// blockSums returns the digests of an agent's blocks by their labels.
func (s *Server) blockSums(ctx context.Context, c Caller) (map[string][sha256.Size]byte, error) {
	list, err := s.Blocks.OfAgent(ctx, c.Org, c.AgentID)
	sums := map[string][sha256.Size]byte{}
	for _, b := range list {
		sums[b.Label] = sha256.Sum256([]byte(b.Value))
	}
	return sums, err
}

// memorySums returns the digests of an agent's memory files by their paths.
func (s *Server) memorySums(ctx context.Context, c Caller) (map[string][sha256.Size]byte, error) {
	sums := map[string][sha256.Size]byte{}
	tree, err := s.MemoryFiles.OfAgent(ctx, c.Org, c.AgentID)
	if errors.Is(err, db.ErrNotFound) {
		return sums, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := s.MemoryFiles.List(ctx, c.Org, tree.ID, memoryfile.Root, db.Held{All: true})
	for _, f := range list {
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil {
			return nil, err
		}
		sums[f.Path] = [sha256.Size]byte(sum)
	}
	return sums, err
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
	for _, uri := range s.others(ctx, h, h.uris(kinds)) {
		_ = h.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // it is always nil
	}
	return otherLists, folder
}

// uris returns the resources of some kinds that are followed.
func (h *hub) uris(kinds map[string]bool) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uri, f := range h.followed {
		if kinds[f.kind] {
			all = append(all, uri)
		}
	}
	return all
}

// others returns the resources that changed since they were read last. One that was deleted counts as an empty text.
func (s *Server) others(ctx context.Context, h *hub, uris []string) (others []string) {
	if len(uris) == 0 {
		return nil
	}
	sums, err := s.sums(ctx, Caller{Org: h.org, AgentID: h.agentID}, uris)
	if err != nil {
		s.Log.WarnContext(ctx, "read the resources that are followed over MCP", "agent", h.agentID, "error", err)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, uri := range uris {
		sum, ok := sums[uri]
		if !ok {
			sum = sha256.Sum256(nil)
		}
		if f := h.followed[uri]; f != nil && f.sum != sum {
			f.sum = sum
			others = append(others, uri)
		}
	}
	return others
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
