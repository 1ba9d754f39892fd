package server

import (
	"sync"
	"time"
)

// Health is the state of the server.
type Health struct {
	Version string `json:"version"`
	Status  string `json:"status"`
}

// Readiness says whether the server's database can store changes.
type Readiness struct {
	Health
	WriteMS   float64   `json:"write_ms" doc:"How long it took to store a row in a new session of the database."`
	CheckedAt time.Time `json:"checked_at" doc:"Of the row. One is stored every few seconds at most."`
}

// readiness keeps the result of the last check, which is repeated to all callers for a while.
type readiness struct {
	mu    sync.Mutex
	last  Readiness
	err   error
	began time.Time
	until time.Time
}
