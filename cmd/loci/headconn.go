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

// headListener accepts connections that keep heads, and whose clients take answers at a pace.
type headListener struct {
	net.Listener
	pace  rest.BodyPace
	heads *longHeads
	open  *openConns
}

// Accept implements net.Listener. Where too many connections are open, it closes one on which no request is handled.
func (l headListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		accepted := newHeadConn(conn, l.pace, l.heads)
		if excess := l.open.add(accepted); excess != nil {
			_ = excess.Close() // its client is gone, or sees that
			if excess == accepted {
				continue
			}
		}
		return accepted, nil
	}
}

// maxConns bounds the connections that are open. One without a request takes some 15 KiB.
const maxConns = 8192

// openConns are the connections that are open: first those that were accepted, or had a request, the longest ago.
type openConns struct {
	most int

	mu  sync.Mutex
	all list.List
}

// add adds a connection. If there are too many then, it returns the first on which no request is handled, or the one
// that was added.
func (o *openConns) add(c *headConn) (excess *headConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.among, c.place = o, o.all.PushBack(c)
	if o.all.Len() <= o.most {
		return nil
	}
	for at := o.all.Front(); ; at = at.Next() {
		if conn := at.Value.(*headConn); conn == c || !conn.isHandling() {
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

// maxHeadBytes bounds the head of a request, and what a connection keeps of it: a query of rank.MaxQueryChars
// characters in a URL, each of which is four bytes of UTF-8 at most and so twelve as the URL has it, and 64 KiB for the
// rest.
const maxHeadBytes = 12*rank.MaxQueryChars + 64<<10

// headSlack is what net/http reads beyond MaxHeaderBytes, and with it of a body.
const headSlack = 64 << 10

// longHeads counts what is kept of heads on their way beyond the first freeHeadBytes of each. Those who send long heads
// and never end them hold no more than longHeadBytes of that together.
type longHeads struct{ bytes atomic.Int64 }

const (
	freeHeadBytes = 16 << 10
	longHeadBytes = 64 << 20
)

var errLongHeads = errors.New("too many long heads of requests are on their way")

// grow counts a head that had some bytes and has more now. errLongHeads if there is no room for it.
func (h *longHeads) grow(from, to int) error {
	more := int64(max(to-freeHeadBytes, 0) - max(from-freeHeadBytes, 0))
	if h.bytes.Add(more) > longHeadBytes && more > 0 {
		h.bytes.Add(-more)
		return errLongHeads
	}
	return nil
}

// release counts a head no more.
func (h *longHeads) release(length int) { h.bytes.Add(-int64(max(length-freeHeadBytes, 0))) }

// headConn keeps what was read since the last request was handled.
type headConn struct {
	net.Conn
	heads  *longHeads
	pace   rest.BodyPace
	answer *rest.Waiting // for the client to take it
	among  *openConns    // nil if it is not counted
	place  *list.Element // in among

	mu       sync.Mutex
	head     []byte
	handling bool // reads return a body or, if of one byte, the beginning of the next head
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling && n > 0 {
		c.forget()
	}
	if !c.handling || len(p) == 1 {
		kept := p[:min(n, maxHeadBytes+headSlack-len(c.head))]
		if full := c.heads.grow(len(c.head), len(c.head)+len(kept)); full != nil {
			return 0, full
		}
		c.head = append(c.head, kept...)
	}
	return n, err
}

// forget keeps the head no more. The caller holds the lock.
func (c *headConn) forget() {
	c.heads.release(len(c.head))
	c.head = c.head[:0]
}

// Close closes the connection.
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

// begin returns what was read up to the handling of a request, and end lets the next head be kept.
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

// newAnswer returns the waiting for a client to take an answer, which may last for good if the client keeps the pace.
func newAnswer(pace rest.BodyPace) *rest.Waiting {
	pace.Total = math.MaxInt64
	return rest.NewWaiting(pace, -1)
}
