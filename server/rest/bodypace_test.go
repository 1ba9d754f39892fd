package rest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// served starts a server of toys on a socket, and returns its address. Its only key is "k".
func served(t *testing.T, pace rest.BodyPace) string {
	t.Helper()
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		if secret != "k" {
			return apikey.Key{}, db.ErrNotFound
		}
		return apikey.Key{Org: 1}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Pace: pace, Keys: keys})
	toys(a)
	web := httptest.NewServer(a.Handler())
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// dial connects to a server for at most a minute.
func dial(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// trickle sends a byte now and then until the connection is closed.
func trickle(conn net.Conn) {
	for range time.Tick(time.Millisecond) {
		if _, err := conn.Write([]byte("{")); err != nil {
			return
		}
	}
}

// If a body does not arrive, or arrives byte by byte, the request is answered, and its connection is closed, with or
// without a key.
func TestAnUnfinishedBodyClosesItsConnection(t *testing.T) {
	t.Parallel()
	pace := rest.BodyPace{Interval: 50 * time.Millisecond, MinBytes: 10_000, Total: time.Second,
		Rest: 50 * time.Millisecond}
	const sized = "Content-Length: 100000"
	for _, c := range []struct {
		name, method, target, key, header string
		trickles                          bool
		status                            int
	}{
		{"a body that stops", "POST", "/v1/toys", "k", sized, false, 408},
		{"a body that trickles", "POST", "/v1/toys", "k", sized, true, 408},
		{"chunks that stop", "POST", "/v1/toys", "k", "Transfer-Encoding: chunked", false, 408},
		{"a body without a key", "POST", "/v1/toys", "", sized, false, 401},
		{"a larger body without a key", "POST", "/v1/toys", "", "Content-Length: 900000000", true, 401},
		{"a body for no route", "POST", "/v1/nothing/here", "k", sized, false, 404},
		{"a body for an operation without one", "GET", "/v1/toys/count", "k", sized, true, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, reader := dial(t, served(t, pace))
			_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n",
				c.method, c.target, c.key, c.header)
			if err != nil {
				t.Fatal(err)
			}
			if c.trickles {
				go trickle(conn)
			}
			got, err := http.ReadResponse(reader, nil)
			if err != nil || got.StatusCode != c.status {
				t.Fatalf("got %+v, %v, want %d", got, err, c.status)
			}
			_, _ = io.Copy(io.Discard, got.Body)
			_ = got.Body.Close()
			if _, err := reader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is kept open: %v", err)
			}
		})
	}
}

// If a handler leaves a short body unread, and the body arrives, the connection stays open.
func TestAShortBodyKeepsItsConnection(t *testing.T) {
	t.Parallel()
	conn, reader := dial(t, served(t, rest.BodyPace{}))
	for range 3 {
		_, err := fmt.Fprintf(conn, "POST /v1/toys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n%s",
			strings.Repeat("x", 100_000))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(reader, nil)
		if err != nil || got.StatusCode != 401 || got.Close {
			t.Fatalf("got %+v, %v", got, err)
		}
		_, _ = io.Copy(io.Discard, got.Body)
		_ = got.Body.Close()
	}
}

// If a body is refused after the client was told to send it, and the client continues to send, it can read the answer.
func TestARefusalArrivesWhileAnAskedForBodyIsSent(t *testing.T) {
	t.Parallel()
	conn, reader := dial(t, served(t, rest.BodyPace{Rest: time.Minute}))
	_, err := fmt.Fprint(conn, "POST /v1/toys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\n"+
		"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if status, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(status, "HTTP/1.1 100 ") {
		t.Fatalf("got %q, %v", status, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	const sent = 64 << 20 // more than the buffers of both sides hold
	if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", sent, strings.Repeat(" ", sent)); err != nil {
		t.Errorf("send the body: %v", err)
	}
	got, err := http.ReadResponse(reader, nil)
	if err != nil || got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := io.Copy(io.Discard, got.Body); err != nil {
		t.Error(err)
	}
	_ = got.Body.Close()
}

// A body at 1 KiB per second may take up to an hour; a slower one half a minute. After that, a long body must keep 64
// KiB per second.
func TestPace(t *testing.T) {
	t.Parallel()
	const whole, unknown = true, int64(-1)
	for _, c := range []struct {
		name     string
		pace     rest.BodyPace
		declared int64
		bytes    int // per step
		step     time.Duration
		waited   time.Duration // a duration in seconds
		came     bool
	}{
		{"a slow line that moves", rest.BodyPace{}, 1 << 20, 1 << 10, time.Second, 1024 * time.Second, whole},
		{"a line that stalls and goes on", rest.BodyPace{}, 1 << 20, 64 << 10, 29 * time.Second, 464 * time.Second, whole},
		{"a trickle", rest.BodyPace{}, 1000, 1, time.Second, 30 * time.Second, false},
		{"nothing", rest.BodyPace{}, 1000, 0, time.Second, 30 * time.Second, false},
		{"a long body by the KiB", rest.BodyPace{}, 40 << 20, 1 << 10, time.Second, 30 * time.Second, false},
		{"a long body of a slow line", rest.BodyPace{}, 40 << 20, 32 << 10, time.Second, 59 * time.Second, false},
		{"a long body that keeps the pace", rest.BodyPace{}, 40 << 20, 64 << 10, time.Second, 640 * time.Second, whole},
		{"a long body that begins late", rest.BodyPace{}, 2 << 20, 1 << 20, 20 * time.Second, 40 * time.Second, whole},
		{"chunks that become long", rest.BodyPace{}, unknown, 1 << 10, time.Second, 1025 * time.Second, false},
		{"a long body that takes hours", rest.BodyPace{}, 1 << 30, 100 << 10, time.Second, time.Hour, false},
		{"no rate", rest.BodyPace{Rate: -1}, 2 << 20, 1 << 10, time.Second, 2048 * time.Second, whole},
	} {
		w := rest.NewWaiting(c.pace, c.declared)
		var waited time.Duration
		var bytes int64
		for w.Patience() > 0 && bytes != c.declared {
			step := min(c.step, w.Patience())
			waited += step
			if step == c.step {
				bytes += int64(c.bytes)
				w.Note(c.bytes, step)
			} else {
				w.Note(0, step)
			}
		}
		if waited.Truncate(time.Second) != c.waited || (bytes == c.declared) != c.came {
			t.Errorf("%s: waited %s for %d bytes, want %s", c.name, waited, bytes, c.waited)
		}
	}
}

// pages answers forms, and recognizes visitors by a cookie.
type pages struct{}

func (pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (pages) Knows(r *http.Request) bool { return r.Header.Get("Cookie") == "known" }

// However many forms strangers send, and whatever is in them, a form is answered.
func TestStrangersDoNotKeepFormsFromOthers(t *testing.T) {
	t.Parallel()
	a := rest.New(rest.Config{Log: slog.New(slog.DiscardHandler)})
	web := httptest.NewServer(a.ForPages(pages{}))
	t.Cleanup(web.Close)
	form := func(cookie string, length int) string {
		return fmt.Sprintf("POST /console/sign-in HTTP/1.1\r\nHost: x\r\nCookie: %s\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", cookie, length)
	}
	for range 1100 {
		conn, _ := dial(t, web.Listener.Addr().String())
		if _, err := io.WriteString(conn, form("", 60<<10)+"key="); err != nil {
			t.Fatal(err)
		}
	}
	for cookie, want := range map[string]map[int]int{"": {5: 200, 900_000: 413}, "known": {5: 200, 900_000: 200}} {
		for length, status := range want {
			conn, answer := dial(t, web.Listener.Addr().String())
			body := strings.Repeat("x", length)
			if status != 200 { // the form is refused before it is sent
				body = ""
			}
			if _, err := io.WriteString(conn, form(cookie, length)+body); err != nil {
				t.Error(err)
			}
			got, err := http.ReadResponse(answer, nil)
			if err != nil || got.StatusCode != status {
				t.Errorf("a form of %d bytes of %q: got %v, %v; want %d", length, cookie, got, err, status)
				continue
			}
			_ = got.Body.Close()
		}
	}
}
