package rest

import "time"

// Waiting is how long a body was waited for.
type Waiting struct{ waiting }

// NewWaiting returns the waiting for a body that begins.
func NewWaiting(p BodyPace) *Waiting { return &Waiting{waiting{pace: p}} }

// Patience returns how long to wait for the next bytes.
func (w *Waiting) Patience() time.Duration { return w.patience() }

// Read notes that n bytes came after a time.
func (w *Waiting) Read(n int, after time.Duration) { w.read(n, after) }
