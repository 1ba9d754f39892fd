package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/server/rest"
)

// exchange sends raw requests over one connection, each after the previous answer. It returns the statuses, with 0
// where the connection was closed. It checks that errors have the form of the API's errors.
func exchange(t *testing.T, addr string, requests ...string) (statuses []int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, raw := range requests {
		status := 0
		if _, err := io.WriteString(conn, raw); err == nil {
			if answer, err := http.ReadResponse(answers, nil); err == nil {
				text, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				status = answer.StatusCode
				if p := (rest.Problem{}); status >= 400 && (json.Unmarshal(text, &p) != nil || p.Detail == "" || p.Link == "" ||
					answer.Header.Get("Content-Type") != rest.JSON) {
					t.Errorf("%.100q: got %s %q, want an error of the API", raw, answer.Status, text)
				}
			}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func TestARequestWithTwoEndsIsRefused(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := newWebServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d bytes%s", len(body), strings.Repeat(" ", 20_000))
	}), nil)
	heads := headListener{Listener: listener, heads: &longHeads{}, open: &openConns{most: maxConns}}
	go web.Serve(heads) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = web.Shutdown(context.Background()) })
	const chunks = "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	chunked := "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked" + chunks
	sized := "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	both := "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked" + chunks
	for name, c := range map[string]struct {
		requests []string
		want     string
	}{
		"one end each": {[]string{chunked, sized, chunked, chunked, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n", chunked},
			"[200 200 200 200 200 200]"},
		"both":                  {[]string{both, sized}, "[400 0]"},
		"both, length last":     {[]string{strings.Replace(chunked, "chunked", "chunked\r\ncontent-LENGTH:4", 1)}, "[400]"},
		"both, after others":    {[]string{chunked, sized, both, chunked}, "[200 200 400 0]"},
		"both, with bare lines": {[]string{strings.ReplaceAll(both[:len(both)-len(chunks)], "\r\n", "\n") + chunks}, "[400]"},
		"a length in the body": {[]string{
			strings.Replace(chunked, "5\r\nhello", "14\r\n\r\nContent-Length: 4", 1)}, "[200]"},
		"a large body, then one": {[]string{"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" +
			strings.Repeat("x", 300_000), chunked}, "[200 200]"},
		"both, sent at once with another": {[]string{sized + both}, "[200]"},
		"no HTTP":                         {[]string{"hello\r\n\r\n", sized}, "[400 0]"},
		"no host":                         {[]string{"GET / HTTP/1.1\r\n\r\n"}, "[400]"},
		"a query of the most characters": {[]string{"GET /b?query=" + strings.Repeat("%F0%9D%94%B8", rank.MaxQueryChars) +
			" HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 60_000) + "\r\n\r\n", chunked}, "[200 200]"},
		"a large header": {[]string{"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 600_000) + "\r\n\r\n"},
			"[431]"},
		"another encoding": {[]string{strings.Replace(chunked, "chunked", "gzip", 1)}, "[501]"},
	} {
		if got := fmt.Sprint(exchange(t, listener.Addr().String(), c.requests...)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// The memory for unfinished heads is bounded. Above the bound, connections with long heads are closed, and short
// requests are answered.
func TestLongHeadsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	heads := &longHeads{}
	var open []*headConn
	for range 400 {
		client, server := net.Pipe()
		conn := newHeadConn(server, rest.BodyPace{}, heads)
		go client.Write(bytes.Repeat([]byte("x"), 400<<10)) //nolint:errcheck // ends when the other end is closed
		buffer, err := make([]byte, 4<<10), error(nil)
		for read := 0; read < 400<<10 && err == nil; {
			var n int
			n, err = conn.Read(buffer)
			read += n
		}
		if err == nil {
			open = append(open, conn)
			continue
		}
		if !errors.Is(err, errLongHeads) {
			t.Fatalf("got %v, want errLongHeads", err)
		}
		_ = conn.Close()
	}
	if held := heads.bytes.Load(); len(open) < 100 || len(open) == 400 || held > longHeadBytes {
		t.Errorf("%d heads hold %d bytes", len(open), held)
	}
	for _, conn := range open {
		conn.begin()
		_ = conn.Close()
	}
	if held := heads.bytes.Load(); held != 0 {
		t.Errorf("afterwards %d bytes are counted", held)
	}
}
