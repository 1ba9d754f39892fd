package mcp

import (
	"context"
	"net/http"

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
