package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

// Both servers are killed while a model writes a hand-over, whose client is gone with them. When one runs again it is
// made, once.
func TestAHandoverOutlivesItsServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	m := modeltest.New(t)
	asked, killed := make(chan struct{}, 1), make(chan struct{})
	var dead atomic.Bool
	m.Reply = func(r modeltest.Asked) modeltest.Answer {
		if dead.Load() {
			return completion(handsOver(string(r.Body)))
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		return modeltest.Answer{Wait: killed}
	}
	servers := launchTwo(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	p := &program{t: t, base: servers[0].url()}
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a", "tools": []string{"memory_files"}}).ID
	call[map[string]any](p, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": []any{
		map[string]any{"role": "assistant", "content": "Noted 1."}}})
	answered := make(chan error, 1)
	go func() {
		_, _, err := post(t.Context(), servers[0].url()+"/v1/agents/"+agent+"/handover", `{}`)
		answered <- err
	}()
	<-asked
	for _, s := range servers {
		s.kill()
	}
	if err := <-answered; err == nil {
		t.Error("a request was answered by a server that was killed")
	}
	dead.Store(true)
	close(killed)
	servers[1].start()
	p.base = servers[1].url()
	list := "/v1/agents/" + agent + "/handovers"
	for deadline := time.Now().Add(patience); ; wait(t.Context(), 20*time.Millisecond) {
		all := call[[]map[string]any](p, "GET", list, nil)
		if len(all) == 1 && all[0]["status"] == "done" {
			break
		}
		if len(all) != 1 || all[0]["status"] != "running" || time.Now().After(deadline) {
			t.Fatalf("the hand-overs: %v\n%s", all, servers[1].log)
		}
	}
	tree := call[identified](p, "GET", "/v1/agents/"+agent+"/memory-tree", nil).ID
	status, text := p.send(http.MethodGet, "/v1/memory-trees/"+tree+"/file?path=/memories/lessons.md", nil)
	if status != http.StatusOK || strings.Count(string(text), "cause-1.") != 1 {
		t.Errorf("the file: %d %s", status, text)
	}
}
