package mcp

import (
	"context"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// For tests.
const (
	MaxBehind             = maxBehind
	MaxSessionReplayBytes = maxSessionReplayBytes
	MaxReplayBytes        = maxReplayBytes
)

// NewReplay returns a store and a function that returns how many bytes it counts, and of how many streams.
func NewReplay() (store sdk.EventStore, size func() (bytes, streams int)) {
	p := newReplay()
	return p, func() (int, int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.bytes, p.byAge.Len()
	}
}

// NewPatient is newPatient.
func NewPatient(w http.ResponseWriter, end context.CancelFunc) (p http.ResponseWriter, wait func()) {
	return newPatient(w, end)
}

// NewEndlessLines returns Lines that await answers for ever.
func NewEndlessLines(in io.Reader, out io.Writer) *Lines {
	l := NewLines(in, out, func(string, []byte) string { return "" })
	l.late = 1000 * time.Hour
	return l
}
