package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/server/rest"
)

// A request with both a Content-Length and a Transfer-Encoding has two possible ends. If a proxy assumes the one and
// this server the other, one of them reads the bytes between the two as another request (request smuggling). net/http
// drops the length before a handler sees it, so connections keep the head of each request.

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

var (
	endOfHead     = regexp.MustCompile(`\n\r?\n`)
	contentLength = regexp.MustCompile(`(?i)\ncontent-length[ \t]*:`)
)

// refuseAmbiguous refuses requests with both headers, and pipelined requests with a Transfer-Encoding: their head is
// not kept, because it was read before the previous request was answered.
func refuseAmbiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connKey{}).(*headConn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		head := conn.begin()
		defer conn.end()
		if len(r.TransferEncoding) > 0 && !isUnambiguous(head, r) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Type", rest.JSON)
			w.WriteHeader(http.StatusBadRequest)
			// net/http reads on for so long, and a client that sends all first sees the answer.
			_ = conn.SetReadDeadline(time.Now().Add(conn.pace.Rest))
			_ = json.NewEncoder(w).Encode(rest.Malformed(
				"The request has both a Content-Length and a Transfer-Encoding; send one"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isUnambiguous(head []byte, r *http.Request) bool {
	end := endOfHead.FindIndex(head)
	return end != nil && bytes.HasPrefix(head, []byte(r.Method+" "+r.RequestURI+" ")) &&
		!contentLength.Match(head[:end[1]])
}
