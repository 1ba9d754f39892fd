package main

import (
	"context"
	"math"
	"net"
	"sync"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/server/rest"
)

// headListener accepts connections that keep heads, and whose clients take answers at a pace.
type headListener struct {
	net.Listener
	pace rest.BodyPace
}

func (l headListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newHeadConn(conn, l.pace), nil
}

// maxHeadBytes bounds the head of a request, and what a connection keeps of it: a query of embed.MaxQueryChars
// characters in a URL, each of which is four bytes of UTF-8 at most and so twelve as the URL has it, and 64 KiB for the
// rest.
const maxHeadBytes = 12*embed.MaxQueryChars + 64<<10

// headSlack is what net/http reads beyond MaxHeaderBytes, and with it of a body.
const headSlack = 64 << 10

// headConn keeps what was read since the last request was handled.
type headConn struct {
	net.Conn
	pace   rest.BodyPace
	answer *rest.Waiting // for the client to take it

	mu       sync.Mutex
	head     []byte
	handling bool // reads return a body or, if of one byte, the beginning of the next head
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling && n > 0 {
		c.head = c.head[:0]
	}
	if !c.handling || len(p) == 1 {
		c.head = append(c.head, p[:min(n, maxHeadBytes+headSlack-len(c.head))]...)
	}
	return n, err
}

// begin returns what was read up to the handling of a request, and end lets the next head be kept.
func (c *headConn) begin() []byte {
	c.answer = newAnswer(c.pace)
	c.mu.Lock()
	defer c.mu.Unlock()
	head := c.head
	c.head, c.handling = nil, true
	return head
}

func (c *headConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling = false
}

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func newHeadConn(conn net.Conn, pace rest.BodyPace) *headConn {
	return &headConn{Conn: conn, pace: pace.WithDefaults(), answer: newAnswer(pace)}
}

// newAnswer returns the waiting for a client to take an answer, which may last for good if the client keeps the pace.
func newAnswer(pace rest.BodyPace) *rest.Waiting {
	pace.Total = math.MaxInt64
	return rest.NewWaiting(pace, -1)
}
