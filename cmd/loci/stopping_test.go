package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// If a request has not ended when the server stops, the answer says so, and the log has a line about the request.
func TestAnUploadThatTheServerCutsIsAnswered(t *testing.T) {
	t.Parallel()
	p := serveAs(t, "--database-url="+sharedURL(t), "--stop-timeout=1ms")
	p.key = tenant(t).key
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	whole := fileForm(t, "a.md", []byte("some words that do not all come"))
	head := whole.body.Bytes()[:whole.body.Len()/2]
	body, sent := io.Pipe()
	defer sent.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/v1/folders/"+folder+"/upload", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", whole.contentType)
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Expect", "100-continue") // the server sends 100 Continue when it reads the body
	go func() {
		_, _ = sent.Write(head)
		p.stop()
	}()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ExpectContinueTimeout = patience
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var problem struct{ Code, Detail string }
	err = json.NewDecoder(res.Body).Decode(&problem)
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || problem.Code != "server_stopping" {
		t.Errorf("got %d, %v and %+v (%v)", res.StatusCode, res.Header, problem, err)
	}
	p.stop()
	lines := 0
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, fmt.Sprintf("path=/v1/folders/%s/upload status=503", folder)) {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("the log has %d lines of the upload:\n%s", lines, p.log)
	}
}

// A server that stops does not wait for ever for a connection that is in use.
func TestAPoolInUseIsNotWaitedForForGood(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), sharedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	closeWithin(0, func() {
		defer close(closed)
		pool.Close()
	})
	select {
	case <-closed:
		t.Error("the pool is closed while a connection is in use")
	default:
	}
	conn.Release()
	<-closed
}
