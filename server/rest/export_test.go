package rest

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// KeyUsage exports keyUsage.
type KeyUsage struct{ *keyUsage }

// NewKeyUsage returns an empty KeyUsage.
func NewKeyUsage(defaults apikey.Limits) KeyUsage { return KeyUsage{newKeyUsage(defaults)} }

// Run begins a request of a key at a time.
func (k KeyUsage) Run(key apikey.Key, at time.Time) (end func(), store bool, err error) {
	return k.begin(key, at)
}

// Begin begins a request of a key at a time, and ends it. If the request is refused, it returns the refusal's
// Retry-After.
func (k KeyUsage) Begin(key apikey.Key, at time.Time) string {
	end, _, err := k.begin(key, at)
	if err != nil {
		return ProblemOf(err).header.Get("Retry-After")
	}
	end()
	return ""
}

// Len returns the number of remembered keys.
func (k KeyUsage) Len() int { return len(k.of) }

// Arrivals exports arrivals, which counts bodies on their way.
type Arrivals struct{ *arrivals }

// NewArrivals returns an empty Arrivals.
func NewArrivals() Arrivals { return Arrivals{newArrivals()} }

// Begin counts a body of a key.
func (a Arrivals) Begin(org db.Org, key string) error { return a.begin(sender{org, key}) }

// End ends the count of a body of a key.
func (a Arrivals) End(org db.Org, key string) { a.end(sender{org, key}) }

// SetRecheck sets how the key of a request is looked up again.
func SetRecheck(c echo.Context, recheck func() error) { setContext(c, keyRecheck, recheck) }
