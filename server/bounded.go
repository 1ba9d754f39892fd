package server

import (
	"cmp"
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
)

// bounded bounds a part of a request that waits for the database. All such parts of a request together take no longer
// than one request may; what is between them, such as its body, has bounds of its own.
func (s *Server) bounded(c echo.Context) (context.Context, context.CancelFunc) {
	const key = "spent"
	ctx := c.Request().Context()
	spent, later := c.Get(key).(time.Duration)
	if !later {
		spent = rest.AuthTook(ctx)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.RequestTimeout, rest.DefaultTimeout)-spent)
	return ctx, func() {
		cancel()
		c.Set(key, spent+time.Since(begun))
	}
}
