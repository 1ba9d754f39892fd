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

// converse captures messages of 1 MiB, ten at a time, until a conversation has largeConversation bytes.
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

// readings returns a document's operations that read something about an agent.
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
		list = append(list, request{"GET", path, nil, 0})
	}
	slices.SortFunc(list, func(a, b request) int { return strings.Compare(a.path, b.path) })
	return list
}

// deeper returns requests that read a conversation and need their own parameters or bodies.
func deeper(agent string) []request {
	path, args := "/v1/agents/"+agent, func(a map[string]any) map[string]any { return map[string]any{"args": a} }
	return []request{
		{"GET", path + "/export?full=true", nil, 200},
		{"GET", path + "/messages?limit=20", nil, 200},
		{"GET", path + "/context?at_seq=200", nil, 0},
		{"GET", path + "/memory-search?query=fox", nil, 200},
		{"POST", "/v1/messages/search", map[string]any{"query": "fox", "agent_id": agent, "limit": 3}, 200},
		{"POST", path + "/policies/preview", map[string]any{"policies": []string{"letta", "claude-code"}}, 200},
		{"POST", path + "/messages/preview-raw-payload", map[string]any{"messages": []any{}}, 200},
		{"POST", "/v1/erasures/preview", map[string]any{"texts": []string{"quick brown fox"}}, 200},
		{"GET", "/v1/conversations/default/ask?question=fox&agent_id=" + agent, nil, 200},
		{"POST", path + "/handover", map[string]any{}, 200},
		{"POST", path + "/tools/conversation_search/run", args(map[string]any{"query": "fox"}), 200},
		{"POST", path + "/tools/expand/run", args(map[string]any{"id": "seq 1-400"}), 200},
		{"GET", path + "/prompt?policy=letta", nil, 200},
		{"POST", path + "/summarize?dry=true", map[string]any{}, 200},
		{"GET", path + "/prompt", nil, 200},
		{"POST", path + "/summarize", map[string]any{}, 200},
		{"GET", path + "/context", nil, 200},
		{"GET", path + "/prompt", nil, 200},
		{"GET", path + "/export", nil, 200},
		{"POST", "/v1/lab/replays", map[string]any{"agent_id": agent}, 422}, // the conversation has too much text
	}
}

type request struct {
	method, path string
	body         any
	status       int // expected status of the answer; 0 allows any except a server error
}

// Each request that reads a conversation of 300 MB takes at most 150 MB of a server's memory.
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
	agent := call[identified](client, "POST", "/v1/agents", map[string]any{"tool_set": "all", "name": "large"}).ID
	converse(client, agent)
	_, document := client.send("GET", "/openapi.json", nil)
	deeper := deeper(agent)
	for _, r := range append(readings(t, document, agent), deeper...) {
		before := p.peak(t)
		status, bytes := answered(t, client, r)
		grown := p.resident(t, "VmHWM") - before
		t.Logf("%s %s: %d, %d bytes, %d MB more memory", r.method, r.path, status, bytes, grown>>20)
		if grown > maxGrowthBytes || status >= http.StatusInternalServerError {
			t.Errorf("%s %s: got %d, and %d MB more memory", r.method, r.path, status, grown>>20)
		}
		if r.status != 0 && status != r.status {
			t.Errorf("%s %s: got %d, want %d", r.method, r.path, status, r.status)
		}
	}
}

// answered sends a request, and returns the answer's status and size.
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
	var beginning strings.Builder
	n, err := io.Copy(&beginning, io.LimitReader(answer.Body, 1<<10))
	if err == nil {
		size, err = io.Copy(io.Discard, answer.Body)
	}
	size += n
	if answer.StatusCode >= http.StatusMultipleChoices {
		t.Logf("%s %s: %d %s", r.method, r.path, answer.StatusCode, beginning.String())
	}
	if err != nil {
		t.Logf("%s %s: %v", r.method, r.path, err)
	}
	return answer.StatusCode, size
}
