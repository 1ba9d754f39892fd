package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/server/mcp"
)

// mcpLines are the messages of an MCP client on a pair of streams, one a line. A line that is no JSON is answered with
// an error, and does not end the session. The end of the input is passed on when the requests before it are answered.
type mcpLines struct {
	in  *bufio.Reader
	out io.Writer

	mu      sync.Mutex
	waiting map[string]bool // the ids of requests without an answer
	idle    *sync.Cond
	rest    []byte // of the line that is being read
}

// answerWithin bounds how long the end of the input waits for answers.
const answerWithin = 2 * time.Minute

func newMCPLines(in io.Reader, out io.Writer) *mcpLines {
	l := &mcpLines{in: bufio.NewReader(in), out: out, waiting: map[string]bool{}}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// envelope is what tells requests from answers.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Error  *jsonrpc.Error  `json:"error"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"` // of notifications/cancelled
	} `json:"params"`
}

// Read implements io.Reader. It returns whole lines that are JSON.
func (l *mcpLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			l.take(text)
		}
		if err != nil && len(l.rest) == 0 {
			l.awaitAnswers()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// take keeps a line to be read, or answers that it is no JSON.
func (l *mcpLines) take(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !json.Valid(text) {
		fmt.Fprintf(l.out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":`+
			`"The line is no JSON: send one message a line"}}`+"\n")
		return
	}
	if answer := mcp.Refused(text); answer != nil {
		_, _ = l.out.Write(answer) // a client that has gone misses it
		return
	}
	var e envelope
	_ = json.Unmarshal(text, &e) // what is no request is refused by the session
	switch {
	case e.Method != nil && e.ID != nil && l.waiting[string(e.ID)]:
		fmt.Fprintf(l.out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":`+
			`"Another request with this id waits for its answer: give each an id of its own"}}`+"\n")
		return
	case e.Method != nil && e.ID != nil:
		l.waiting[string(e.ID)] = true
	case e.Method != nil && *e.Method == "notifications/cancelled":
		delete(l.waiting, string(e.Params.RequestID))
	}
	l.rest = append(append([]byte{}, text...), '\n')
}

// awaitAnswers waits until no request waits for its answer, or answerWithin.
func (l *mcpLines) awaitAnswers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := false
	timer := time.AfterFunc(answerWithin, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.idle.Broadcast()
	})
	defer timer.Stop()
	for len(l.waiting) > 0 && !late {
		l.idle.Wait()
	}
}

// Write implements io.Writer. It is given whole messages.
func (l *mcpLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var e envelope
	if json.Unmarshal(p, &e) == nil && e.Method == nil && e.ID != nil {
		delete(l.waiting, string(e.ID))
	}
	shown := p
	if e.Error != nil && e.Error.Code == 0 { // the SDK has no code for a request before initialize
		e.Error.Code = jsonrpc.CodeInvalidRequest
		shown, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": e.ID, "error": e.Error}) // it was read from JSON
		shown = append(shown, '\n')
	}
	_, err := l.out.Write(shown)
	if err != nil {
		clear(l.waiting) // the client has gone
	}
	if len(l.waiting) == 0 {
		l.idle.Broadcast()
	}
	return len(p), err
}

// Close implements io.Closer. The streams stay open.
func (*mcpLines) Close() error { return nil }
