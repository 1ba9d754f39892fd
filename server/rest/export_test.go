package rest

import (
	"time"

	"github.com/loci-memory/loci/server/apikey"
)

// Waiting is how long a body was waited for.
type Waiting struct{ waiting }

// NewWaiting returns the waiting for a body that begins.
func NewWaiting(p BodyPace) *Waiting { return &Waiting{waiting{pace: p}} }

// Patience returns how long to wait for the next bytes.
func (w *Waiting) Patience() time.Duration { return w.patience() }

// Read notes that n bytes came after a time.
func (w *Waiting) Read(n int, after time.Duration) { w.read(n, after) }

// KeyUsage is what keys have used.
type KeyUsage struct{ *keyUsage }

// NewKeyUsage returns the usage of no key.
func NewKeyUsage(defaults apikey.Limits) KeyUsage { return KeyUsage{newKeyUsage(defaults)} }

// Run begins a request of a key at a time.
func (k KeyUsage) Run(key apikey.Key, at time.Time) (end func(), store bool, err error) {
	return k.begin(key, at)
}

// Begin begins a request of a key at a time and ends it. It returns the Retry-After of the refusal, if it is refused.
func (k KeyUsage) Begin(key apikey.Key, at time.Time) string {
	end, _, err := k.begin(key, at)
	if err != nil {
		return ProblemOf(err).header.Get("Retry-After")
	}
	end()
	return ""
}

// Len is the number of keys that are remembered.
func (k KeyUsage) Len() int { return len(k.of) }
