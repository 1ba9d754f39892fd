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
	Timeout        time.Duration // how long a request may take, streams excepted; DefaultTimeout if 0
	Keys           *Keys         // nil serves every request without an organization
	KeyAge         time.Duration // how long an open answer trusts a checked key; DefaultKeyAge if 0
	Pace           BodyPace      // how fast request bodies must come
	Budget         BodyBudget    // bytes of request bodies in memory
	SpoolBytes     int64         // bytes of the files that hold bodies being received; DefaultSpoolBytes if 0
	Origins        Origins       // whose pages may call the API from a browser
	Observe        func(Served)  // is called with each request that was answered; may be nil

	// Ready returns an error while changes cannot be stored. A check that was made after since may be reused. Ready is nil
	// without a database.
	Ready func(ctx context.Context, since time.Time) error
}

// DefaultTimeout is how long a request may take, streams excepted.
const DefaultTimeout = 30 * time.Second

// DefaultKeyAge is how long an open answer trusts a checked key before it checks the key again.
const DefaultKeyAge = time.Second

// API is where operations are registered.
type API struct {
	huma.API
	Config
	echo     *echo.Echo
	access   map[string]map[string]Access // access by route: path as echo writes it, then method
	ofUsers  map[string]map[string]bool   // the routes that are OfUsers or WithUsers, as access, and whether WithUsers
	whole    map[string]bool              // paths, as echo writes them, with a GET that is no stream
	spooled  *db.Shares                   // bytes of bodies in files
	bodies   heldBytes                    // bytes of bodies in memory
	answers  *db.Shares                   // bytes of rows in answers
	served   *db.Shares                   // requests being worked on; streams that are only read do not count
	arriving *arrivals                    // bodies that are not complete
	usage    *keyUsage                    // requests of each key
	lookups  *lookups                     // look-ups of keys
	full     atomic.Bool                  // whether a change could not be stored
	lacks    atomic.Pointer[time.Time]    // when the schema was seen to lack a part; nil once it is whole
}

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
