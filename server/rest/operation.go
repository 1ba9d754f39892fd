package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Option changes an operation before it is registered.
type Option func(*operation)

type operation struct {
	huma.Operation
	timeout time.Duration
	own     bool
	exact   bool
	waits   func(*http.Request) bool

	converses bool // works in a conversation: for a user, in one with that user
	ofUsers   bool // keeps to the memories of the user for whom the request works
	readsMore bool // reads more rows than it answers with
	readsBody bool // the handler of this stream reads the body to its end
}

// Own marks an operation that Letta does not have. In such an operation a value that breaks a rule is a 422; in Letta's
// operations it is a 400, as in Letta.
func Own(op *operation) { op.own = true }

// OfUsers marks an operation that keeps to the memories of the user for whom a request works, if it works for one: that
// of the key's, or the one that the header X-Loci-User names. Such a request is refused by all other operations.
func OfUsers(op *operation) { op.ofUsers = true }

// WithUsers is OfUsers for an operation that works in a conversation. If the request names none, it is the oldest with
// the user, which is made if there is none.
func WithUsers(op *operation) { op.ofUsers, op.converses = true, true }

// Exact makes an operation refuse unknown fields and parameters, where others only warn. It is for operations that
// cannot be undone.
func Exact(op *operation) { op.exact = true }

// NoContent makes an operation answer with status 204.
func NoContent(op *operation) { op.DefaultStatus = http.StatusNoContent }

// Deprecated marks an operation that new programs should not use.
func Deprecated(op *operation) { op.Deprecated = true }

// Slow gives an operation at least this much time.
func Slow(timeout time.Duration) Option {
	return func(op *operation) { op.timeout = max(op.timeout, timeout) }
}

// Renamed gives an operation on an older path an id of its own, by replacing a word of the id.
func Renamed(old, new string) Option {
	return func(op *operation) { op.Summary = strings.Replace(op.Summary, old, new, 1) }
}

// OnlyWaits says which requests of a Stream only wait for events. Like a GET, they do not count among the requests
// being worked on.
func OnlyWaits(waits func(*http.Request) bool) Option {
	return func(op *operation) { op.waits = waits }
}
