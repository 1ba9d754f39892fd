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

// listen answers requests until ctx ends, and then lets those that have begun end.
func (p *process) listen(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := newWebServer(handler, slog.NewLogLogger(p.log.Handler(), slog.LevelDebug))
	served := make(chan error, 1)
	go func() { served <- web.Serve(headListener{listener}) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := web.Shutdown(stopping)
	if err != nil {
		err = web.Close() // requests still run
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) { // which Serve returns after Shutdown
		err = errors.Join(err, ended)
	}
	return err
}
