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

// subscribe lets a session follow a resource. It returns an error if the resource does not exist.
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

// subscribeAll lets a session follow resources. It skips resources that do not exist, and returns the others, even if
// an error occurs.
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

// add counts one more subscription of a session to a resource. If no session follows the resource yet, sum is the
// digest of the resource's text.
func (h *hub) add(uri string, sum [sha256.Size]byte, session *sdk.ServerSession) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.followed[uri]
	if f == nil && len(h.followed) == maxFollowed {
		return wrong("%s", tooManyFollowed)
	}
	if f == nil {
		place, _ := placeOf(h.agentID, uri)
		f = &followed{place.kind, sum, map[*sdk.ServerSession]int{}}
		h.followed[uri] = f
	}
	f.by[session]++
	return nil
}

// unsubscribe undoes one subscribe.
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

// forget removes all subscriptions of a session to a resource. The caller holds h.mu.
func (h *hub) forget(uri string, session *sdk.ServerSession) {
	f := h.followed[uri]
	if delete(f.by, session); len(f.by) == 0 {
		delete(h.followed, uri)
	}
}

// forgetAll removes all subscriptions of a session that has ended.
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

// sums returns the digests of resources' texts by URI, without resources that cannot be read. It reads all blocks
// together, and all memory files; other resources one by one.
func (s *Server) sums(ctx context.Context, c Caller, uris []string) (map[string][sha256.Size]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	readers := map[string]func(context.Context, Caller) (map[string][sha256.Size]byte, error){blocks: s.blockSums,
		memory: s.memorySums}
	together := map[string]map[string][sha256.Size]byte{}
	sums := map[string][sha256.Size]byte{}
	var mu sync.Mutex
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for _, uri := range uris {
		place, ok := placeOf(c.AgentID, uri)
		if !ok {
			continue
		}
		if reader := readers[place.kind]; reader != nil {
			if together[place.kind] == nil {
				all, err := reader(ctx, c)
				if err != nil {
					return nil, errors.Join(err, group.Wait())
				}
				together[place.kind] = all
			}
			if sum, ok := together[place.kind][nameOf(place)]; ok {
				mu.Lock()
				sums[uri] = sum
				mu.Unlock()
			}
			continue
		}
		group.Go(func() error {
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
	return sums, group.Wait()
}

// nameOf returns the label of a block, or the path of a memory file; empty for any other resource.
func nameOf(p place) string {
	if p.kind == blocks && len(p.path) == 1 {
		return p.path[0]
	}
	if path, err := memoryfile.ParseFile(memoryPath(p)); p.kind == memory && err == nil {
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

// effect says what an event may change.
type effect struct {
	kind   string // the resources of this kind may have new texts
	lists  bool   // lists of resources or tools may change
	folder bool   // a folder came or went: clients are told that both lists changed
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

// changed tells a hub's clients which resources events changed. otherLists reports whether lists may have changed, and
// folder whether a folder came or went. If due is set, changed also checks files and conversations, because no events
// report their changes.
func (s *Server) changed(ctx context.Context, h *hub, events []event.Event, due bool) (otherLists, folder bool) {
	kinds := map[string]bool{folders: due, conversations: due}
	for _, e := range events {
		effect := effects[e.Type]
		kinds[effect.kind] = true
		otherLists, folder = otherLists || effect.lists, folder || effect.folder
	}
	if kinds[memory] {
		listChanged(h.server)
	}
	for _, uri := range s.others(ctx, h, h.uris(kinds)) {
		_ = h.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // the error is always nil
	}
	return otherLists, folder
}

// uris returns the followed resources of some kinds.
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

// others returns the resources with texts that differ from those read last. A deleted resource counts as an empty text.
func (s *Server) others(ctx context.Context, h *hub, uris []string) (changed []string) {
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
			changed = append(changed, uri)
		}
	}
	return changed
}

// toolsChanged tells the sessions of a server that their tools may have changed. The SDK sends that message when a tool
// is added; no client sees the added tool.
func toolsChanged(server *sdk.Server) {
	server.AddTool(&sdk.Tool{Name: "changed", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, errCursor })
}

// listChanged tells the sessions of a server that the list of resources may have changed. The SDK sends that message
// when a resource is added; no client sees the added resource.
func listChanged(server *sdk.Server) {
	server.AddResource(&sdk.Resource{URI: scheme + "changed", Name: "changed"},
		func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, noResource(ctx, r.Params.URI)
		})
}
