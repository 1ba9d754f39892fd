// Package gateway lets a program that speaks with a provider of models send its requests through this server, which
// keeps what is said, and puts in what its memories hold. What a client sends is passed on, and what the provider
// answers is passed back, byte for byte, where nothing is added.
//
// Each file uses only the files named before it:
//   - requests: body.go dialect.go slot.go unit.go
//   - answers from which something is left out: rewrite.go
//   - where their messages are kept: gateway.go place.go
//   - their way to the provider and back: credential.go forward.go answer.go owner.go exchange.go
//   - what is changed in them: notes.go offer.go window.go putback.go inside.go
//   - the routes: serve.go
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/apikey"
)

// What is done with a request while the memory cannot be reached.
const (
	Pass   = "pass" // it goes to the provider as it came
	Refuse = "refuse"
)

// The forms of requests, by the provider whose they are.
const (
	OpenAI    = model.FormatOpenAI
	Anthropic = model.FormatAnthropic
)

// Upstreams are the providers that are asked.
type Upstreams = model.Upstreams

// Options configure a Gateway.
type Options struct {
	Agents    *agent.Store
	Recall    *recall.Store
	Loop      *loop.Loop
	Tools     *tool.Set
	Upstreams Upstreams
	Mode      string // of requests that name none, and whose agent and key have none; one of agent.GatewayModes
	OnFailure string // Pass or Refuse
	Log       *slog.Logger

	FindWithin time.Duration // how long a request waits until its conversation is known; 0 means two seconds

	// User returns the identity that a request names, which it may make.
	User func(ctx context.Context, key apikey.Key, named string) (apikey.User, error)

	// Create makes an agent with a name, whose model has a handle, and returns its id.
	Create func(ctx context.Context, name, handle string) (id string, err error)

	// Ask counts a request that the server's own credential pays for; an error refuses it. Spend counts its tokens.
	Ask   func(ctx context.Context, org db.Org) error
	Spend func(ctx context.Context, org db.Org, tokens int64) error

	// Embed answers a request for vectors in OpenAI's form with the vectors that this server makes. Only requests without
	// a credential of their own are answered so, because another model's vectors would not fit those that a program has.
	Embed func(ctx context.Context, request []byte) (answer any, err error)
}

// Gateway serves the requests.
type Gateway struct {
	Options
	client  *http.Client
	streams *db.Shares // requests that are at providers
	seen    seen
	found   atomic.Int64 // when the memory answered last, in nanoseconds since 1970
	away    atomic.Int64 // until when the memory is not asked, in nanoseconds since 1970; 0: it is there
}

// findTimeout is how long a request waits until its conversation is known, without another setting.
const findTimeout = 2 * time.Second

// leaveAlone keeps requests from asking the memory for a while, because it could not be reached by one that began at a
// time. If it has answered others since then, it is only busy.
func (g *Gateway) leaveAlone(begin time.Time) {
	if g.found.Load() < begin.UnixNano() {
		g.away.Store(now().Add(awayFor).UnixNano())
	}
}

func now() time.Time { return time.Now() }

// Call is a request of a client in the form of a provider.
type Call struct {
	Answer  http.ResponseWriter
	Request *http.Request
	Format  string // OpenAI or Anthropic
	Path    string // behind /v1/
	AgentID string // the agent in the path; may be empty
	Key     string // the key in the path; may be empty

	// Admit returns the request for the key with a secret, as rest.API.Admit does.
	Admit func(secret string) (r *http.Request, done func(), err error)
	// Hold reads the body, as rest.API.HoldAny does.
	Hold func(limitBytes int64) (body []byte, release func(), err error)
}

// maxStreams is how many requests may be at providers at the same time; an organization may have a quarter of them.
const maxStreams = 2048

// New returns a gateway.
func New(o Options) *Gateway {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		ExpectContinueTimeout: time.Second}
	o.FindWithin = cmp.Or(o.FindWithin, findTimeout)
	o.Mode, o.OnFailure = cmp.Or(o.Mode, agent.GatewayRemember), cmp.Or(o.OnFailure, Pass)
	return &Gateway{Options: o, streams: db.NewShares(maxStreams, maxStreams/4), seen: seen{at: map[[32]byte]time.Time{}},
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
}

// seen remembers for a minute which keys were valid.
type seen struct {
	mu sync.Mutex
	at map[[32]byte]time.Time // by the SHA-256 of the secret
}

const (
	trustKey = time.Minute
	maxSeen  = 10_000
)

func (s *seen) note(sum [32]byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) >= maxSeen {
		clear(s.at)
	}
	s.at[sum] = now
}

func (s *seen) forget(sum [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, sum)
}

func (s *seen) isTrusted(sum [32]byte, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, has := s.at[sum]
	return has && now.Sub(at) < trustKey
}
