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

// Bounds on the messages that are kept for broken streams.
const (
	maxReplayBytes        = 64 << 20 // of all sessions
	maxSessionReplayBytes = 2 << 20
	messageBytes          = 64  // overhead of a message besides its text
	streamBytes           = 256 // overhead of a stream besides its messages
)

// streamBuffer keeps the newest messages of all sessions' streams, for clients that resume a broken stream. To make
// room, it drops messages of the streams that were written longest ago.
type streamBuffer struct {
	mu       sync.Mutex
	bytes    int
	sessions map[string]*sessionBuffer
	byAge    *list.List // streams that have messages, the least recently written first
}

// sessionBuffer holds the kept messages of a session.
type sessionBuffer struct {
	bytes   int
	streams map[string]*replayedStream
	byAge   *list.List // as in replay
}

// replayedStream holds the kept messages of a stream. Its list elements are nil while it has no messages.
type replayedStream struct {
	id               string
	of               *sessionBuffer
	session          string
	first            int // index of the first kept message
	messages         [][]byte
	inAll, inSession *list.Element
}

var _ sdk.EventStore = (*streamBuffer)(nil)

func newStreamBuffer() *streamBuffer {
	return &streamBuffer{sessions: map[string]*sessionBuffer{}, byAge: list.New()}
}

// Open implements sdk.EventStore.
func (p *streamBuffer) Open(_ context.Context, session, stream string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil {
		s = &sessionBuffer{streams: map[string]*replayedStream{}, byAge: list.New()}
		p.sessions[session] = s
	}
	if s.streams[stream] == nil {
		s.streams[stream] = &replayedStream{id: stream, session: session, of: s}
	}
	return nil
}

var errDropped = errors.New("the stream's messages are no longer kept")

// Append implements sdk.EventStore.
func (p *streamBuffer) Append(_ context.Context, session, stream string, data []byte) error {
	if isCancelled(data) {
		return nil // errors of cancelled requests are not sent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil || s.streams[stream] == nil {
		return errDropped
	}
	target := s.streams[stream]
	target.messages = append(target.messages, data)
	added := len(data) + messageBytes
	if target.inAll == nil {
		target.inAll, target.inSession = p.byAge.PushBack(target), s.byAge.PushBack(target)
		added += streamBytes
	}
	p.byAge.MoveToBack(target.inAll)
	s.byAge.MoveToBack(target.inSession)
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

// dropFirst drops the first message of a stream. When the last message goes, the stream goes too, except the stream of
// a session's own messages, because that one goes on.
func (p *streamBuffer) dropFirst(s *replayedStream) {
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

// After implements sdk.EventStore. If a stream is read from its beginning, its first message is the first kept one,
// because the SDK counts from there.
func (p *streamBuffer) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rest [][]byte
	err := errDropped
	if s := p.sessions[session]; s != nil && s.streams[stream] != nil {
		target := s.streams[stream]
		if index < 0 {
			target.first = 0
		}
		if start := index + 1 - target.first; start >= 0 && start <= len(target.messages) {
			rest, err = slices.Clone(target.messages[start:]), nil
		}
	}
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range rest {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements sdk.EventStore.
func (p *streamBuffer) SessionClosed(_ context.Context, session string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[session]
	if s == nil {
		return nil
	}
	for _, stream := range s.streams {
		if stream.inAll != nil {
			p.byAge.Remove(stream.inAll)
		}
	}
	p.bytes -= s.bytes
	delete(p.sessions, session)
	return nil
}
