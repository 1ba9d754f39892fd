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

	readsMore bool // than it answers
	readsBody bool // of a stream: its handler reads the body to its end
}

// Own marks an operation that Letta does not have: a value that breaks a rule is a 422 there. Where Letta has it, it is
// a 400, as in Letta.
func Own(op *operation) { op.own = true }

// Exact refuses a request with a field or a parameter that the operation does not know, which is only warned of
// elsewhere: what cannot be undone is not done otherwise than it was meant.
func Exact(op *operation) { op.exact = true }

// NoContent makes an operation answer 204.
func NoContent(op *operation) { op.DefaultStatus = http.StatusNoContent }

// Deprecated marks an operation that new programs should not use.
func Deprecated(op *operation) { op.Deprecated = true }

// Slow lets an operation take at least this long.
func Slow(timeout time.Duration) Option {
	return func(op *operation) { op.timeout = max(op.timeout, timeout) }
}

// Renamed gives an operation on an older path an id of its own: a word of its id is replaced.
func Renamed(old, new string) Option {
	return func(op *operation) { op.Summary = strings.Replace(op.Summary, old, new, 1) }
}

// OnlyWaits says which requests of a Stream only wait for what happens: they are not counted among those that are
// worked on, as a GET is not.
func OnlyWaits(waits func(*http.Request) bool) Option {
	return func(op *operation) { op.waits = waits }
}
