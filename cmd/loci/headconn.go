package main

import (
	"container/list"
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/server/rest"
)

// headListener accepts connections as headConns: they keep the heads of requests, and bound how slowly clients may
// read.
type headListener struct {
	net.Listener
	pace  rest.BodyPace
	heads *longHeads
	open  *openConns
}

// Accept implements net.Listener. If too many connections are open, it closes one that is handling no request.
func (l headListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		accepted := newHeadConn(conn, l.pace, l.heads)
		if excess := l.open.add(accepted); excess != nil {
			_ = excess.Close() // the client sees the closed connection
			if excess == accepted {
				continue
			}
		}
		return accepted, nil
	}
}

// maxConns bounds the open connections. A connection without a request takes about 15 KiB.
const maxConns = 8192

// openConns holds the open connections. Those that were accepted, or had a request, longest ago come first.
type openConns struct {
	most int

	mu  sync.Mutex
	all list.List
}

// add adds a connection. If there are then too many, it returns one to close: the first that is handling no request, or
// the new one.
func (o *openConns) add(c *headConn) (excess *headConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.among, c.place = o, o.all.PushBack(c)
	if o.all.Len() <= o.most {
		return nil
	}
	for element := o.all.Front(); ; element = element.Next() {
		if conn := element.Value.(*headConn); conn == c || !conn.isHandling() {
			return conn
		}
	}
}

// used notes that a connection had a request.
func (o *openConns) used(c *headConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.MoveToBack(c.place)
}

func (o *openConns) remove(c *headConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Remove(c.place)
}

// maxHeadBytes bounds the head of a request, and the part that a connection keeps. It has room for a URL with a query
// of rank.MaxQueryChars characters, each of at most four bytes in UTF-8 and so twelve bytes when escaped, and for 64
// KiB besides.
const maxHeadBytes = 12*rank.MaxQueryChars + 64<<10

// headSlack is how much net/http reads beyond MaxHeaderBytes, which may include a part of the body.
const headSlack = 64 << 10

// longHeads counts the kept bytes of incomplete heads, beyond the first freeHeadBytes of each. Clients that never
// finish long heads can hold at most longHeadBytes together.
type longHeads struct{ bytes atomic.Int64 }

const (
	freeHeadBytes = 16 << 10
	longHeadBytes = 64 << 20
)

var errLongHeads = errors.New("too many long heads of requests are on their way")

// grow counts that a head grows from one length to another. errLongHeads if there is no room for it.
func (h *longHeads) grow(before, after int) error {
	added := int64(max(after-freeHeadBytes, 0) - max(before-freeHeadBytes, 0))
	if h.bytes.Add(added) > longHeadBytes && added > 0 {
		h.bytes.Add(-added)
		return errLongHeads
	}
	return nil
}

// release takes a head of this length out of the count.
func (h *longHeads) release(length int) { h.bytes.Add(-int64(max(length-freeHeadBytes, 0))) }

// headConn keeps the bytes that were read since the last request was handled.
type headConn struct {
	net.Conn
	heads  *longHeads
	pace   rest.BodyPace
	answer *rest.Waiting // measures how fast the client takes the answer
	among  *openConns    // nil if the connection is not counted
	place  *list.Element // the connection's place in among

	mu       sync.Mutex
	head     []byte
	handling bool // reads return a body; a read of one byte may return the beginning of the next head
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling && n > 0 {
		c.forget()
	}
	if !c.handling || len(p) == 1 {
		read := p[:min(n, maxHeadBytes+headSlack-len(c.head))]
		if full := c.heads.grow(len(c.head), len(c.head)+len(read)); full != nil {
			return 0, full
		}
		c.head = append(c.head, read...)
	}
	return n, err
}

// forget drops the kept head. The caller holds c.mu.
func (c *headConn) forget() {
	c.heads.release(len(c.head))
	c.head = c.head[:0]
}

func (c *headConn) Close() error {
	c.mu.Lock()
	c.forget()
	c.mu.Unlock()
	if c.among != nil {
		c.among.remove(c)
	}
	return c.Conn.Close()
}

func (c *headConn) isHandling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handling
}

// begin returns what was read before a request is handled. end lets the next head be kept.
func (c *headConn) begin() []byte {
	c.answer = newAnswer(c.pace)
	c.mu.Lock()
	defer c.mu.Unlock()
	head := c.head
	c.forget()
	c.head, c.handling = nil, true
	return head
}

func (c *headConn) end() {
	c.mu.Lock()
	c.handling = false
	c.mu.Unlock()
	if c.among != nil {
		c.among.used(c)
	}
}

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func newHeadConn(conn net.Conn, pace rest.BodyPace, heads *longHeads) *headConn {
	return &headConn{Conn: conn, heads: heads, pace: pace.WithDefaults(), answer: newAnswer(pace)}
}

// newAnswer returns a Waiting for an answer. The answer may take any time if the client keeps the pace.
func newAnswer(pace rest.BodyPace) *rest.Waiting {
	pace.Total = math.MaxInt64
	return rest.NewWaiting(pace, -1)
}
