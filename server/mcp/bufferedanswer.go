package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// maxBehind is how many unsent bytes of an answer may be waiting when another message is written.
const maxBehind = 1 << 20

// bufferedAnswer is an answer that never makes its writer wait for the client. The answer ends if the client reads too
// slowly; the client then asks again for the messages that it missed.
type bufferedAnswer struct {
	http.ResponseWriter
	end context.CancelFunc // ends the request

	mu      sync.Mutex
	more    sync.Cond
	waiting []byte
	flush   bool  // send the headers, even before the first byte
	ended   error // why nothing more may be sent
}

// newBufferedAnswer returns an answer. wait blocks until all written bytes are sent.
func newBufferedAnswer(w http.ResponseWriter, cancel context.CancelFunc) (p *bufferedAnswer, wait func()) {
	p = &bufferedAnswer{ResponseWriter: w, end: cancel}
	p.more.L = &p.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.send()
	}()
	return p, func() {
		p.mu.Lock()
		if p.ended == nil {
			p.ended = errComplete
		}
		p.more.Signal()
		p.mu.Unlock()
		<-done
	}
}

var (
	errBehind   = errors.New("the client reads too slowly")
	errComplete = errors.New("the answer is complete")
)

// Write implements io.Writer.
func (p *bufferedAnswer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil && len(p.waiting) > maxBehind {
		p.fail(errBehind)
	}
	if p.ended != nil {
		return 0, p.ended
	}
	p.waiting = append(p.waiting, data...)
	p.more.Signal()
	return len(data), nil
}

// fail ends the answer. The caller holds p.mu.
func (p *bufferedAnswer) fail(why error) {
	p.ended, p.waiting = why, nil
	p.end()
	p.more.Signal()
}

// FlushError is called by http.ResponseController. Written bytes are sent at once anyway; FlushError sends the headers
// of an answer that has no bytes yet.
func (p *bufferedAnswer) FlushError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush = true
	p.more.Signal()
	return nil
}

// send sends written bytes until the answer is complete.
func (p *bufferedAnswer) send() {
	flush := http.NewResponseController(p.ResponseWriter)
	for {
		p.mu.Lock()
		for len(p.waiting) == 0 && !p.flush && p.ended == nil {
			p.more.Wait()
		}
		data, head := p.waiting, p.flush
		p.waiting, p.flush = nil, false
		p.mu.Unlock()
		if len(data) == 0 && !head {
			return
		}
		var err error
		if len(data) > 0 {
			_, err = p.ResponseWriter.Write(data)
		}
		if err == nil {
			err = flush.Flush()
		}
		if err != nil {
			p.mu.Lock()
			p.fail(err)
			p.mu.Unlock()
			return
		}
	}
}
