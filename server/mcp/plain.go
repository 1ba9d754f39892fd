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

// Problem is an error of a request that is no message: its session, its stream, or its form.
type Problem struct {
	Status   int
	Sentence string
}

// Error implements error.
func (p *Problem) Error() string { return p.Sentence }

// plain is an answer that holds back the SDK's errors of content type text/plain.
type plain struct {
	http.ResponseWriter
	begun  sync.Once
	sent   bool // the head, once begun
	stream bool // an answer of events, once begun
	status int  // of the text; 0 if the answer is none
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

// FlushError is for http.ResponseController.
func (p *plain) FlushError() error {
	p.begin()
	return http.NewResponseController(p.ResponseWriter).Flush()
}

// begin sets the last headers of an answer, before anything is sent. Its headers belong to the goroutine that sends it
// from then on.
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

// Unwrap is for http.ResponseController.
func (p *plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// answer answers a request with a handler of the SDK. The SDK's errors in plain text become errors of JSON-RPC where
// they are about a message, else a Problem.
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

// sentence returns a sentence in place of the SDK's error.
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
