package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/tenant/apikey"
)

// largeConversation is the size of a conversation's texts.
const largeConversation = 300 << 20

// converse captures messages of 1 MiB, ten at a time, until a conversation has largeConversation.
func converse(client *program, agent string) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1<<20/45)
	for n := range largeConversation / (10 << 20) {
		var messages []map[string]any
		for i := range 10 {
			role := []string{"user", "assistant"}[i%2]
			messages = append(messages, map[string]any{"role": role, "content": fmt.Sprint(n, " ", i, " ", text)})
		}
		call[any](client, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": messages})
	}
	last := []map[string]any{{"role": "user", "content": "And the dog?"}, {"role": "assistant", "content": "It sleeps."}}
	call[any](client, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": last})
}

// readings returns requests that read a conversation: all operations of a document that read, and some that write.
func readings(t *testing.T, document []byte, agent string) (list []request) {
	t.Helper()
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		path = strings.NewReplacer("{agent_id}", agent, "{conversation_id}", "default").Replace(path)
		if methods["get"] == nil || strings.Contains(path, "{") || strings.HasSuffix(path, "/stream") {
			continue
		}
		if strings.Contains(path, "/conversations/") {
			path += "?agent_id=" + agent
		}
		list = append(list, request{"GET", path, nil})
	}
	slices.SortFunc(list, func(a, b request) int { return strings.Compare(a.path, b.path) })
	of := "/v1/agents/" + agent
	return append(list,
		request{"GET", of + "/export?full=true", nil}, request{"GET", of + "/messages?limit=1000", nil},
		request{"GET", of + "/context?at_seq=200", nil}, request{"GET", of + "/memory-search?query=fox", nil},
		request{"POST", "/v1/messages/search", map[string]any{"query": "fox", "agent_id": agent}},
		request{"POST", of + "/policies/preview", map[string]any{}},
		request{"POST", of + "/messages/preview-raw-payload", map[string]any{"messages": []any{}}},
		request{"POST", "/v1/erasures", map[string]any{"text": "quick brown fox", "agent_id": agent, "preview": true}},
		request{"POST", "/v1/conversations/default/ask", map[string]any{"agent_id": agent, "question": "Which fox?"}},
		request{"POST", of + "/handover", map[string]any{}},
		request{"POST", "/v1/lab/replays", map[string]any{"agent_id": agent}},
		request{"POST", of + "/tools/conversation_search/run", map[string]any{"args": map[string]any{"query": "fox"}}},
		request{"POST", of + "/tools/expand/run", map[string]any{"args": map[string]any{"id": "seq 1-400"}}},
		request{"GET", of + "/prompt?policy=%7B%7D", nil},
		request{"POST", of + "/summarize?dry=true", map[string]any{}},
		request{"GET", of + "/prompt", nil}, request{"POST", of + "/summarize", map[string]any{}},
		request{"GET", of + "/context", nil}, request{"GET", of + "/prompt", nil}, request{"GET", of + "/export", nil})
}

// request is a request to a server.
type request struct {
	method, path string
	body         any
}

// A conversation of 300 MB takes at most 150 MB of a server's memory, whoever reads it.
func TestLargeConversationsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	pool, org := dbtest.Org(t)
	key, _ := keyOf(t, pool, apikey.NewKey{In: org, Name: "test", Scopes: []string{apikey.Write, apikey.Admin}})
	p := &serverProcess{t: t, tmp: t.TempDir(), log: newLines(),
		args: []string{"serve", "--addr=127.0.0.1:0", "--embedding=off", "--database-url=" + sharedURL(t)}}
	t.Cleanup(p.kill)
	p.start()
	client := &program{t: t, base: p.url(), key: key, log: p.log}
	agent := call[identified](client, "POST", "/v1/agents", map[string]any{"name": "large"}).ID
	converse(client, agent)
	_, document := client.send("GET", "/openapi.json", nil)
	for _, r := range readings(t, document, agent) {
		before := p.peak(t)
		status, bytes := answered(t, client, r)
		grown := p.resident(t, "VmHWM") - before
		t.Logf("%s %s: %d, %d bytes, %d MB more memory", r.method, r.path, status, bytes, grown>>20)
		if grown > maxGrowthBytes || status == http.StatusInternalServerError {
			t.Errorf("%s %s: got %d, and %d MB more memory", r.method, r.path, status, grown>>20)
		}
	}
}

// answered sends a request, and returns the status of its answer and the answer's bytes.
func answered(t *testing.T, client *program, r request) (status int, size int64) {
	t.Helper()
	body := io.Reader(http.NoBody)
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			t.Fatal(err)
		}
		body = strings.NewReader(string(text))
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, client.base+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+client.key)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	size, err = io.Copy(io.Discard, answer.Body)
	if err != nil {
		t.Logf("%s %s: %v", r.method, r.path, err)
	}
	return answer.StatusCode, size
}
