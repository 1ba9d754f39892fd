package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

// If a client takes nothing for half a minute, or takes a long answer at 2 KiB per second, it gets nothing more. Pauses
// between the parts of an answer do not count.
func TestAnAnswerIsTakenAtAPace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		bytes, step int           // written in total; taken per second
		quiet       time.Duration // before each KiB
		taken       bool
		after       time.Duration // a duration in seconds
	}{
		{"nothing is taken", 1 << 20, 0, 0, false, 30 * time.Second},
		{"a trickle", 1 << 20, 10, 0, false, 30 * time.Second},
		{"a short answer of a slow client", 1 << 20, 2 << 10, 0, true, 511 * time.Second},
		{"a long answer of a slow client", 2 << 20, 2 << 10, 0, false, 512 * time.Second},
		{"a long answer at the rate", 8 << 20, 64 << 10, 0, true, 127 * time.Second},
		{"news now and then", 4 << 10, 1 << 10, time.Hour, true, 4 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			done := make(chan struct{})
			defer func() {
				_ = server.Close()
				<-done
			}()
			go func() {
				defer close(done)
				for c.step > 0 {
					if _, err := io.CopyN(io.Discard, client, int64(c.step)); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			conn, began := newHeadConn(server, rest.BodyPace{}, &longHeads{}), time.Now()
			var err error
			for range c.bytes >> 10 {
				time.Sleep(c.quiet)
				if _, err = conn.Write(make([]byte, 1<<10)); err != nil {
					break
				}
			}
			after := time.Since(began).Truncate(time.Second)
			if (err == nil) != c.taken || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || after != c.after {
				t.Errorf("%s: got %v after %s, want %t after %s", c.name, err, after, c.taken, c.after)
			}
		})
	}
}

// serveRaw serves a handler on a socket at a pace, and returns a connection to it.
func serveRaw(t *testing.T, pace rest.BodyPace, handler http.HandlerFunc) net.Conn {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := newWebServer(handler, nil)
	conns := headListener{listener, pace, &longHeads{}, &openConns{most: maxConns}}
	go web.Serve(conns) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = web.Shutdown(context.Background()) })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A client that reads nothing before it has sent a large body completely sees the answer that refused the body.
func TestTheAnswerToARefusedBodyArrives(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"a length": fmt.Sprintf("Content-Length: %d\r\n\r\n", 16<<20),
		"chunks":   fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", 16<<20),
	} {
		conn := serveRaw(t, rest.BodyPace{Rest: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		})
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+head+strings.Repeat("x", 16<<20)); err != nil {
			t.Errorf("%s: send the body: %v", name, err)
		}
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || got.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got %v, %v", name, got, err)
			continue
		}
		_ = got.Body.Close()
		_ = conn.Close()
	}
}

// If a client asks before it sends a body that is too large, it is not told to send it.
func TestABodyThatIsTooLargeIsNotAskedFor(t *testing.T) {
	t.Parallel()
	api := rest.New(rest.Config{Log: slog.New(slog.DiscardHandler)})
	rest.Post(api.For(rest.AnyKey), "/v1/toys", "make_toy: A toy.", func(context.Context, *struct {
		Body struct {
			Name string `json:"name"`
		}
	}) (*int, error) {
		return nil, nil
	})
	conn := serveRaw(t, rest.BodyPace{Rest: 10 * time.Millisecond}, api.Handler().ServeHTTP)
	_, err := io.WriteString(conn, "POST /v1/toys HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: 2000000000\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the connection ends
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("got %q, %v", answer, err)
	}
}

// If a refused body never ends, its connection is closed.
func TestARefusedBodyThatNeverEndsClosesItsConnection(t *testing.T) {
	t.Parallel()
	conn := serveRaw(t, rest.BodyPace{Rest: 10 * time.Millisecond}, func(http.ResponseWriter, *http.Request) {})
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n5")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the connection ends
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("got %q, %v", answer, err)
	}
}
