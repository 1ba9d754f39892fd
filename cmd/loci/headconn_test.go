package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/loci-memory/loci/server/rest"
)

// If there are too many connections, those without a request are closed, starting with the one that was quiet for the
// longest time.
func TestTooManyConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	web := newWebServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(began)
			<-goOn
		}
		fmt.Fprint(w, "done")
	}), nil)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go web.Serve(headListener{listener, rest.BodyPace{}, &longHeads{}, &openConns{most: 3}}) //nolint:errcheck // see Close
	t.Cleanup(func() { _ = web.Close() })
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, path string) {
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(what string, conn net.Conn) {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	closed := func(what string, conn net.Conn) {
		if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s is not closed: %d bytes, %v", what, n, err)
		}
	}
	busy, first, second := dial(), dial(), dial()
	ask(busy, "/long")
	<-began
	ask(second, "/")
	answer("the second", second)
	ask(first, "/")
	answer("the first", first)
	third := dial()
	closed("the one that was quiet for the longest", second)
	fourth := dial()
	closed("the next", first)
	ask(fourth, "/")
	answer("the newest", fourth)
	close(goOn)
	answer("the one with a request", busy)
	_ = third
}
