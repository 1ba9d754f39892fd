package rest

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// A request whose body is on its way is not at work: it takes a place among the requests at work when the body has
// arrived. Bodies on their way have a bound of their own, so that those that come slowly take no place from others.

// countBodies bounds how many bodies are on their way, but for those to public operations, which read none.
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

// place is a request's place among those at work.
type place struct {
	in  *db.Shares
	org db.Org

	mu          sync.Mutex
	taken, left bool
}

// take takes the place. A *Problem of status 429 if the organization has as many as it may have.
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

// leave gives the place back, if it was taken.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken && !p.left {
		p.in.Give(p.org, 1)
	}
	p.left = true
}

// serve calls handle, which works on a request whose body has arrived, in a place. A *Problem of status 429 if there is
// none.
func (a *API) serve(ctx context.Context, handle func() error) error {
	p := &place{in: a.served, org: Org(ctx)}
	if err := p.take(); err != nil {
		return err
	}
	defer p.leave()
	return handle()
}

// serveStream calls handle, which reads the body of a request to its end, and then has a place. It leaves the place
// when its answer begins, because a client may take its time to read it; a stream of events, when it ends. readsBody
// says that handle reads a body: any other request has its place from the beginning.
func (a *API) serveStream(c echo.Context, readsBody bool, handle echo.HandlerFunc) error {
	ctx := c.Request().Context()
	p := &place{in: a.served, org: Org(ctx)}
	defer p.leave()
	c.Response().Before(func() {
		if !strings.HasPrefix(c.Response().Header().Get(echo.HeaderContentType), "text/event-stream") {
			p.leave()
		}
	})
	if body, on := ctx.Value(keyBody).(*arrivingBody); on && readsBody && !body.over {
		body.begin = p.take
	} else if err := p.take(); err != nil {
		return err
	}
	return handle(c)
}
