package rest

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// A request begins to count as being worked on when its body has arrived: then it takes a place. Bodies that are still
// arriving have a bound of their own, so that slow senders take no places from others.

// countBodies bounds how many bodies are arriving. Public operations read no body, so their bodies do not count.
func (a *API) countBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody || a.isPublic(c.Path()) {
			return next(c)
		}
		body, err := a.arriving.body(r.Body, sender{Org(r.Context()), KeyOf(r.Context())})
		if err != nil {
			return err
		}
		defer body.arrived()
		r.Body = body
		setContext(c, keyBody, body)
		return next(c)
	}
}

// place is a request's place among those being worked on.
type place struct {
	in  *db.Shares
	org db.Org

	mu          sync.Mutex
	taken, left bool
}

// take takes the place. A *Problem of status 429 if the organization has all places that it may have.
func (p *place) take() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken || p.left {
		return nil
	}
	if !p.in.TryTake(p.org, 1, 0) {
		return retryLater(codeTooMany, "Too many requests are being worked on; try again in a moment", "1")
	}
	p.taken = true
	return nil
}

// leave gives the place back if it was taken.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken && !p.left {
		p.in.Give(p.org, 1)
	}
	p.left = true
}

// serve calls handle while the request holds a place. The request's body has arrived. A *Problem of status 429 if no
// place is free.
func (a *API) serve(ctx context.Context, handle func() error) error {
	p := &place{in: a.served, org: Org(ctx)}
	if err := p.take(); err != nil {
		return err
	}
	defer p.leave()
	return handle()
}

// serveStream calls handle. If readsBody, handle reads the body to its end, and takes a place there; any other request
// takes its place at once. The place is given back when the answer begins, because a client may read slowly; a stream
// of events gives its place back at its end.
func (a *API) serveStream(c echo.Context, readsBody bool, handle echo.HandlerFunc) error {
	ctx := c.Request().Context()
	p := &place{in: a.served, org: Org(ctx)}
	defer p.leave()
	c.Response().Before(func() {
		if !strings.HasPrefix(c.Response().Header().Get(echo.HeaderContentType), "text/event-stream") {
			p.leave()
		}
	})
	if body, arriving := ctx.Value(keyBody).(*arrivingBody); arriving && readsBody && !body.over {
		body.begin = p.take
	} else if err := p.take(); err != nil {
		return err
	}
	return handle(c)
}
