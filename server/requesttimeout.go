package server

import (
	"cmp"
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
)

// bounded returns a context for those parts of a request that wait for the database. All these parts of one request
// together get RequestTimeout. The parts between them, such as reading the body, have time limits of their own.
func (s *Server) bounded(c echo.Context) (context.Context, context.CancelFunc) {
	const key = "spent"
	ctx := c.Request().Context()
	spent, calledBefore := c.Get(key).(time.Duration)
	if !calledBefore {
		spent = rest.AuthTook(ctx)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.RequestTimeout, rest.DefaultTimeout)-spent)
	return ctx, func() {
		cancel()
		c.Set(key, spent+time.Since(start))
	}
}
