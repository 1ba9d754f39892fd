package mcp

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/db/event"
)

func (s *Server) leave(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(s.hubs, h.hubKey)
	}
}

// join counts a session that wants to be told of changes; leave ends that.
func (s *Server) join(ctx context.Context, h *hub) (leave func(), err error) {
	if !s.takeSession(h.hubKey) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Too many sessions are open; end some of " +
			"them, or try again later"}
	}
	if err := s.follow(ctx, h); err != nil {
		s.giveSession(h.hubKey)
		return nil, s.problem(ctx, err)
	}
	s.mu.Lock()
	h.users++
	s.mu.Unlock()
	return func() {
		h.unfollow()
		s.giveSession(h.hubKey)
		s.leave(h)
	}, nil
}

// takeSession counts a session of a key. It returns false if the key or its organization has as many as it may have.
func (s *Server) takeSession(key hubKey) bool {
	key.agentID = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] >= maxKeySessions || !s.sessions.TryTake(key.org, 1, 0) {
		return false
	}
	s.keys[key]++
	return true
}

// giveSession takes a session out of the count.
func (s *Server) giveSession(key hubKey) {
	key.agentID = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.Give(key.org, 1)
	if s.keys[key]--; s.keys[key] == 0 {
		delete(s.keys, key)
	}
}

// follow starts telling the hub's sessions of changes, unless that runs already.
func (s *Server) follow(ctx context.Context, h *hub) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers++; h.followers > 1 {
		return nil
	}
	known, err := s.listsOf(ctx, h)
	var head int64
	if err == nil {
		head, err = event.Head(ctx, s.DB, h.org, h.agentID)
	}
	if err == nil {
		var tail *event.Follower
		if tail, err = s.Followers.Follow(ctx, h.org, h.agentID, head, nil); err == nil {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			h.stop, h.stopped = cancel, make(chan struct{})
			go s.tell(ctx, h, tail, known, h.stopped)
		}
	}
	if err != nil {
		h.followers--
	}
	return err
}

// unfollow undoes follow when the last session leaves.
func (h *hub) unfollow() {
	h.mu.Lock()
	stop, stopped := h.stop, h.stopped
	if h.followers--; h.followers > 0 || stop == nil {
		h.mu.Unlock()
		return
	}
	h.stop = nil
	h.mu.Unlock()
	stop()
	<-stopped
}

// filesEvery is how often a hub checks the agent's files and conversations. No event reports that a file changed, or
// that a conversation was created or deleted.
const filesEvery = 30 * time.Second

// tell tells the hub's sessions of the agent's events until ctx ends. It ends the sessions if the agent is deleted or
// the server stops. known is the last result of listsOf.
func (s *Server) tell(ctx context.Context, h *hub, tail *event.Follower, known lists, done chan<- struct{}) {
	defer close(done)
	defer tail.Close()
	looked := time.Now()
	for {
		events, err := tail.Next(ctx, max(s.FilesEvery-time.Since(looked), 0))
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			h.end()
			return
		}
		if err != nil {
			s.Log.WarnContext(ctx, "sessions over MCP are not told of changes", "agent", h.agentID, "error", err)
			if !pause(ctx) {
				return
			}
			continue
		}
		due := time.Since(looked) >= s.FilesEvery
		if lists, folder := s.changed(ctx, h, events, due); lists || due {
			known = s.lookAtLists(ctx, h, known, folder)
		}
		if due {
			looked = time.Now()
		}
	}
}

// pause waits before a failed read is repeated. It returns false if ctx ended.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
