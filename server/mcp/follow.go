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

// join counts a session that is told of changes; end ends it.
func (s *Server) join(ctx context.Context, h *hub) (end func(), err error) {
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

// takeSession counts a session of a key, and reports false if the key or its organization may have no more.
func (s *Server) takeSession(of hubKey) bool {
	of.agentID = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[of] >= maxKeySessions || !s.sessions.TryTake(of.org, 1, 0) {
		return false
	}
	s.keys[of]++
	return true
}

// giveSession counts a session no more.
func (s *Server) giveSession(of hubKey) {
	of.agentID = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.Give(of.org, 1)
	if s.keys[of]--; s.keys[of] == 0 {
		delete(s.keys, of)
	}
}

// follow begins to tell the hub's sessions what changes, if nothing does it yet.
func (s *Server) follow(ctx context.Context, h *hub) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers++; h.followers > 1 {
		return nil
	}
	was, err := s.listsOf(ctx, h)
	var head int64
	if err == nil {
		head, err = event.Head(ctx, s.DB, h.org, h.agentID)
	}
	if err == nil {
		var tail *event.Follower
		if tail, err = s.Followers.Follow(ctx, h.org, h.agentID, head, nil); err == nil {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			h.stop, h.stopped = cancel, make(chan struct{})
			go s.tell(ctx, h, tail, was, h.stopped)
		}
	}
	if err != nil {
		h.followers--
	}
	return err
}

// unfollow ends what follow began, with the last session.
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

// filesEvery is the time after which a hub looks again at the agent's files and conversations. No event reports that a
// file changed, or that a conversation was made or deleted.
const filesEvery = 30 * time.Second

// tell tells the hub's sessions of the agent's events until ctx ends. It ends the sessions if the agent is deleted or
// the server stops. was is the result of listsOf before.
func (s *Server) tell(ctx context.Context, h *hub, tail *event.Follower, was lists, done chan<- struct{}) {
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
			was = s.lookAtLists(ctx, h, was, folder)
		}
		if due {
			looked = time.Now()
		}
	}
}

// pause waits before a read is tried again, and reports whether ctx lasted.
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
