package rest

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

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

// Arrivals counts bodies on their way.
type Arrivals struct{ *arrivals }

// NewArrivals returns the count of no body.
func NewArrivals() Arrivals { return Arrivals{newArrivals()} }

// Begin counts a body of a key.
func (a Arrivals) Begin(org db.Org, key string) error { return a.begin(sender{org, key}) }

// End counts it no more.
func (a Arrivals) End(org db.Org, key string) { a.end(sender{org, key}) }

// SetRecheck sets how the key of a request is looked up again.
func SetRecheck(c echo.Context, recheck func() error) { setContext(c, keyRecheck, recheck) }
