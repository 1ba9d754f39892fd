package rest

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// Config configures an API.
type Config struct {
	Title, Version string
	Log            *slog.Logger
	Timeout        time.Duration // of each request that is not streamed; DefaultTimeout if 0
	Keys           *Keys         // nil serves every request without an organization
	KeyAge         time.Duration // that an open answer believes a key which was checked; DefaultKeyAge if 0
	Pace           BodyPace      // of the bodies of requests
	Budget         BodyBudget    // of the bodies that are in memory
	SpoolBytes     int64         // of the files of bodies that are being received; DefaultSpoolBytes if 0
	Observe        func(Served)  // gets each request that was answered; may be nil

	// Ready returns why changes would not be stored, as it was found out after a time; nil without a database.
	Ready func(ctx context.Context, since time.Time) error
}

// DefaultTimeout is how long a request may take.
const DefaultTimeout = 30 * time.Second

// DefaultKeyAge is how long a key that was checked counts for the events of an open answer.
const DefaultKeyAge = time.Second

// API is where operations are registered.
type API struct {
	huma.API
	Config
	echo     *echo.Echo
	access   map[string]map[string]Access // of echo's routes, by path and method
	whole    map[string]bool              // paths of echo's routes whose GET is no stream
	spooled  *db.Shares                   // bytes of bodies in files
	bodies   heldBytes                    // of bodies
	answers  *db.Shares                   // bytes of the rows of answers
	served   *db.Shares                   // requests at work, but for streams that are only read
	arriving *arrivals                    // bodies on their way
	usage    *keyUsage                    // of keys
	lookups  *lookups                     // of keys
	full     atomic.Bool                  // a change could not be stored
	lacks    atomic.Pointer[time.Time]    // when a request failed as the schema lacks a part; nil if it is whole again
}

// spools returns the shares of SpoolBytes.
func (c Config) spools() *db.Shares {
	total := cmp.Or(c.SpoolBytes, DefaultSpoolBytes)
	return db.NewShares(total, total/2)
}

// Served is a request that was answered.
type Served struct {
	Method string
	Route  string // the pattern of its path, {name} for parameters; empty for a path that is not served
	Status int
	Took   time.Duration
}
