package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

const (
	headerTimeout = 10 * time.Second // for the headers of a request
	idleTimeout   = 2 * time.Minute  // for a connection without a request
)

// newWebServer returns a server for the connections of a headListener.
func newWebServer(handler http.Handler, errorLog *log.Logger) *http.Server {
	return &http.Server{Handler: refuseAmbiguous(handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeadBytes, ConnContext: withConn, ErrorLog: errorLog}
}

// listen serves requests until ctx ends, and then waits for running requests. Requests that take too long are
// cancelled, and answered that the server stops.
func (p *process) listen(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := newWebServer(handler, slog.NewLogLogger(p.log.Handler(), slog.LevelDebug))
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	web.BaseContext = func(net.Listener) context.Context { return requests }
	served := make(chan error, 1)
	heads := headListener{Listener: listener, pace: rest.BodyPace{Rate: p.bodyRate()}, heads: &longHeads{},
		open: &openConns{most: maxConns}}
	go func() { served <- web.Serve(heads) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	err := shutDown(requests, web, p.StopTimeout)
	if err != nil {
		cancel(rest.ErrStopping)
		err = shutDown(context.WithoutCancel(requests), web, cutTimeout)
	}
	if err != nil {
		err = web.Close() // some requests still run
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) { // Serve returns that after Shutdown
		err = errors.Join(err, serveErr)
	}
	return err
}

// cutTimeout is how long cancelled requests may take to end.
const cutTimeout = time.Second

// closeWithin waits for a pool of connections to close. That takes as long as a connection is in use, for example by an
// MCP call of a client that is gone. After patience it gives up; the rest ends with the program.
func closeWithin(patience time.Duration, closePool func()) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		closePool()
	}()
	select {
	case <-closed:
	case <-time.After(patience):
	}
}

// shutDown accepts no more connections, and waits for the open ones to end. It returns an error if they take longer
// than patience.
func shutDown(ctx context.Context, web *http.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return web.Shutdown(ctx)
}
