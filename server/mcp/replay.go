package mcp

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of the kept messages of streams.
const (
	maxReplayBytes        = 64 << 20 // of all sessions
	maxSessionReplayBytes = 2 << 20
	messageBytes          = 64  // of a message beside its text
	streamBytes           = 256 // of a stream beside its messages
)

// replay keeps the newest messages of the streams of all sessions, for clients that resume a broken stream. It drops
// the messages of the streams that were written least recently.
type replay struct {
	mu       sync.Mutex
	bytes    int
	sessions map[string]*replayed
	byAge    *list.List // of streams with messages, the one that was written least recently first
}

// replayed has the kept messages of a session.
type replayed struct {
	bytes   int
	streams map[string]*replayedStream
	byAge   *list.List // as in replay
}

// replayedStream has the kept messages of a stream. Its elements are nil while it has no messages.
type replayedStream struct {
	id               string
	of               *replayed
	session          string
	first            int // the index of the first message that is kept
	messages         [][]byte
	inAll, inSession *list.Element
}

var _ sdk.EventStore = (*replay)(nil)

func newReplay() *replay { return &replay{sessions: map[string]*replayed{}, byAge: list.New()} }

// Open implements sdk.EventStore.
func (p *replay) Open(_ context.Context, session, stream string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil {
		s = &replayed{streams: map[string]*replayedStream{}, byAge: list.New()}
		p.sessions[session] = s
	}
	if s.streams[stream] == nil {
		s.streams[stream] = &replayedStream{id: stream, session: session, of: s}
	}
	return nil
}

var errDropped = errors.New("the stream's messages are no longer kept")

// Append implements sdk.EventStore.
func (p *replay) Append(_ context.Context, session, stream string, data []byte) error {
	if isCancelled(data) {
		return nil // it is not sent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil || s.streams[stream] == nil {
		return errDropped
	}
	kept := s.streams[stream]
	kept.messages = append(kept.messages, data)
	added := len(data) + messageBytes
	if kept.inAll == nil {
		kept.inAll, kept.inSession = p.byAge.PushBack(kept), s.byAge.PushBack(kept)
		added += streamBytes
	}
	p.byAge.MoveToBack(kept.inAll)
	s.byAge.MoveToBack(kept.inSession)
	p.bytes += added
	s.bytes += added
	for s.bytes > maxSessionReplayBytes {
		p.dropFirst(s.byAge.Front().Value.(*replayedStream))
	}
	for p.bytes > maxReplayBytes {
		p.dropFirst(p.byAge.Front().Value.(*replayedStream))
	}
	return nil
}

// dropFirst drops the first message of a stream and, with the last, the stream. That of a session's own messages stays:
// it goes on.
func (p *replay) dropFirst(s *replayedStream) {
	dropped := len(s.messages[0]) + messageBytes
	s.messages[0] = nil
	s.messages = s.messages[1:]
	s.first++
	if len(s.messages) == 0 {
		dropped += streamBytes
		p.byAge.Remove(s.inAll)
		s.of.byAge.Remove(s.inSession)
		s.inAll, s.inSession = nil, nil
		if s.id != "" {
			delete(s.of.streams, s.id)
		}
	}
	p.bytes -= dropped
	s.of.bytes -= dropped
}

// After implements sdk.EventStore. A stream that is read from its beginning begins with what is kept of it: the SDK
// counts its messages from there.
func (p *replay) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	var after [][]byte
	err := errDropped
	if s := p.sessions[session]; s != nil && s.streams[stream] != nil {
		kept := s.streams[stream]
		if index < 0 {
			kept.first = 0
		}
		if from := index + 1 - kept.first; from >= 0 && from <= len(kept.messages) {
			after, err = slices.Clone(kept.messages[from:]), nil
		}
	}
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range after {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements sdk.EventStore.
func (p *replay) SessionClosed(_ context.Context, session string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil {
		return nil
	}
	for _, kept := range s.streams {
		if kept.inAll != nil {
			p.byAge.Remove(kept.inAll)
		}
	}
	p.bytes -= s.bytes
	delete(p.sessions, session)
	return nil
}
