package mcp

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/db"
)

// Problem is an error in a request outside of its message: in its session, its stream, or its form.
type Problem struct {
	Status   int
	Sentence string
}

// Error implements error.
func (p *Problem) Error() string { return p.Sentence }

// plain is an answer that holds back the SDK's errors in text/plain.
type plain struct {
	http.ResponseWriter
	begun  sync.Once
	sent   bool // whether the headers were sent; valid once begun
	stream bool // whether the answer is a stream of events; valid once begun
	status int  // status of an error in text/plain; 0 if there is none
	text   []byte
}

// WriteHeader implements http.ResponseWriter.
func (p *plain) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.status = status
		return
	}
	p.begin()
	p.ResponseWriter.WriteHeader(status)
}

// FlushError is called by http.ResponseController.
func (p *plain) FlushError() error {
	p.begin()
	return http.NewResponseController(p.ResponseWriter).Flush()
}

// begin sets the last headers before anything is sent. From then on, only the goroutine that sends the answer may touch
// its headers.
func (p *plain) begin() {
	p.begun.Do(func() {
		p.sent = true
		p.stream = strings.HasPrefix(p.Header().Get("Content-Type"), "text/event-stream")
		if p.stream {
			p.Header().Set("X-Accel-Buffering", "no") // proxies would hold events back
		}
	})
}

// Write implements io.Writer.
func (p *plain) Write(data []byte) (int, error) {
	if p.status > 0 {
		p.text = append(p.text, data...)
		return len(data), nil
	}
	p.begin()
	if p.stream && isCancelled(data) {
		return len(data), nil // the client wants no answer any more
	}
	return p.ResponseWriter.Write(data)
}

// Unwrap is called by http.ResponseController.
func (p *plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// answer lets a handler of the SDK answer a request. If the SDK answers with an error in plain text, answer sends a
// JSON-RPC error if the error is about a message, and otherwise returns a *Problem.
func answer(sdk http.Handler, w http.ResponseWriter, r *http.Request) error {
	p := &plain{ResponseWriter: w}
	sdk.ServeHTTP(p, r)
	if p.status == 0 {
		if !p.sent && r.Method == http.MethodGet && r.Header.Get(lastEventHeader) != "" {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNoContent) // the stream has ended, and the client has all of it
		}
		return nil
	}
	w.Header().Del("X-Content-Type-Options")
	w.Header().Del("Content-Type")
	sentence := p.sentence(r)
	if r.Method == http.MethodPost && p.status == http.StatusBadRequest {
		return (&refusal{p.status, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: sentence}}).write(w)
	}
	return &Problem{p.status, sentence}
}

// sentence rewrites an error of the SDK as a sentence.
func (p *plain) sentence(r *http.Request) string {
	last := r.Header.Get(lastEventHeader)
	switch {
	case p.status == http.StatusNotFound:
		return fmt.Sprintf("There is no session %s: it has ended, or the server was started again. Begin a new one with "+
			"initialize", db.Short(r.Header.Get(sessionHeader)))
	case p.status == http.StatusConflict:
		return "Another request follows this stream of the session: end it first"
	case p.status == http.StatusBadRequest && r.Method == http.MethodGet && last != "":
		return fmt.Sprintf("Nothing is kept behind the %s %s: no stream of the session had it, or what came after it was "+
			"dropped. Follow the session without the header", lastEventHeader, db.Short(last))
	}
	return cmp.Or(strings.TrimSpace(string(p.text)), http.StatusText(p.status))
}
