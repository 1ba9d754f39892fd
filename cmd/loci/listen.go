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
	headerTimeout = 10 * time.Second // for a request's headers
	idleTimeout   = 2 * time.Minute  // of a connection without a request
)

// newWebServer returns a server for connections of a headListener.
func newWebServer(handler http.Handler, errorLog *log.Logger) *http.Server {
	return &http.Server{Handler: refuseAmbiguous(handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeadBytes, ConnContext: withConn, ErrorLog: errorLog}
}

// listen answers requests until ctx ends, and then lets those that have begun end. Those that have not ended in time
// are told to, and answered that the server stops.
func (p *process) listen(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := newWebServer(handler, slog.NewLogLogger(p.log.Handler(), slog.LevelDebug))
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
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
		cut(rest.ErrStopping)
		err = shutDown(context.WithoutCancel(requests), web, cutTimeout)
	}
	if err != nil {
		err = web.Close() // requests still run
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) { // which Serve returns after Shutdown
		err = errors.Join(err, ended)
	}
	return err
}

// cutTimeout is for requests to end that were told to.
const cutTimeout = time.Second

// closeWithin waits for a pool of connections to close, which takes for as long as one is in use: by a call over MCP,
// say, of a client that is gone. What still runs then ends with the program.
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

// shutDown takes no more connections and waits until those that are open have ended. An error if they do not in time.
func shutDown(ctx context.Context, web *http.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return web.Shutdown(ctx)
}
