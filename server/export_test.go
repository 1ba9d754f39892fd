package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// The adapter and the errors are tested on operations of their own.

type (
	Surface = surface
	Problem = problem
	AgentID = agentID
	Object  = object
)

var ProblemOf = problemOf

// NewToys returns the surface that Handler builds, without the server's operations and without authentication.
func NewToys(s *Server, register func(*Surface)) http.Handler {
	e := echo.New()
	e.HTTPErrorHandler = s.writeError
	e.Use(identify, s.logAccess, s.recoverPanics())
	surface := newSurface(e, "Toys", "1", s.fail)
	register(surface)
	return normalize(e)
}

// Toy registers an operation.
func Toy[I, O any](s *Surface, method, path string, handle func(context.Context, *I) (O, error)) {
	route(s, method, path, "A toy", handle)
}

// ToyWithout registers an operation that answers 204.
func ToyWithout[I, O any](s *Surface, method, path string, handle func(context.Context, *I) (O, error)) {
	route(s, method, path, "A toy", handle, noContent)
}

// ReadCapture says what is wrong with a body of capture, nil if it is understood.
func ReadCapture(body string) error {
	var c Capture
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		return unprocessable("body", err.Error())
	}
	_, _, err := c.read()
	return err
}

// NewProblem returns an error with a status.
func NewProblem(status int, detail string) error { return newProblem(status, detail) }

// Page is what a list asks its store for.
func (p Paging) Page(limit int, order string) db.Page { return p.page(limit, order) }

// Paged is a page of a list in memory.
func Paged[T any](list []T, p db.Page, id func(T) string) []T { return paged(list, p, id) }
