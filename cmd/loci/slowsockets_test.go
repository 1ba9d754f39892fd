package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/tenant/apikey"
)

// trickle sends a body of 40 MB to an agent's log at 1.3 KB per second, and returns the answer's status. It calls asked
// when the server waits for the body.
func trickle(t *testing.T, address, key, agent string, asked func()) (int, error) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		asked()
		return 0, err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/agents/%s/messages/capture HTTP/1.1\r\nHost: localhost\r\n"+
		"Authorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", agent, key, 40<<20)
	reader := bufio.NewReader(conn)
	if err == nil {
		_, err = reader.ReadString('\n')
	}
	asked()
	if err != nil {
		return 0, err
	}
	if _, err := reader.ReadString('\n'); err != nil { // the end of the head of 100 Continue
		return 0, err
	}
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = io.WriteString(conn, strings.Repeat(" ", 1300)) // the server may have closed the connection
			}
		}
	})
	defer sending.Wait()
	defer close(stop)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// A thousand slow bodies of two organizations do not block a server for others, and end.
func TestSlowSocketsDoNotHoldTheServer(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	p := &serverProcess{t: t, tmp: t.TempDir(), log: newLines(),
		args: []string{"serve", "--addr=127.0.0.1:0", "--database-url=" + sharedURL(t)}}
	t.Cleanup(p.kill)
	p.start()
	var clients []*program
	for range 3 {
		pool, org := dbtest.Org(t)
		key, _ := keyOf(t, pool, apikey.NewKey{In: org, Name: "test", Scopes: []string{apikey.Write}})
		clients = append(clients, &program{t: t, base: p.url(), key: key, log: p.log})
	}
	var asked, ended sync.WaitGroup
	for i, n := range []int{900, 500} {
		agent := call[identified](clients[i], "POST", "/v1/agents", map[string]any{"name": "slow"}).ID
		for range n {
			asked.Add(1)
			ended.Go(func() {
				status, err := trickle(t, strings.TrimPrefix(p.url(), "http://"), clients[i].key, agent, asked.Done)
				if status != http.StatusRequestTimeout {
					t.Errorf("a slow body: got %d, %v, want 408", status, err)
				}
			})
		}
	}
	asked.Wait()
	third := clients[2]
	agent := call[identified](third, "POST", "/v1/agents", map[string]any{"name": "quick"}).ID
	for _, c := range []struct {
		client       *program
		method, path string
		body         any
	}{
		{third, "GET", "/v1/health", nil}, {third, "GET", "/v1/ready", nil}, {third, "GET", "/v1/agents", nil},
		{third, "POST", "/v1/agents/" + agent + "/messages/capture",
			map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Hello"}}}},
		{clients[0], "GET", "/v1/agents", nil},
	} {
		if status, answer := c.client.send(c.method, c.path, c.body); status != http.StatusOK {
			t.Errorf("%s %s beside slow bodies: got %d %s", c.method, c.path, status, answer)
		}
	}
	if status := initialize(t, third, agent); status != http.StatusOK {
		t.Errorf("MCP beside slow bodies: got %d", status)
	}
	ended.Wait()
}

// initialize begins an MCP session, and returns the answer's status.
func initialize(t *testing.T, p *program, agent string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/mcp/agents/"+agent, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},`+
			`"clientInfo":{"name":"test","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
