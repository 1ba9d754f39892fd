package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// interrupted is a model that lets each kind of work wait until the servers that asked are dead.
type interrupted struct {
	asked chan string // kinds of work that wait for an answer
	dead  chan struct{}
	over  atomic.Bool
}

func (i *interrupted) reply(r modeltest.Asked) modeltest.Answer {
	kind, answer := "replay", completion("The user asks what each part of src does, and the assistant names its limit.")
	switch body := string(r.Body); {
	case strings.Contains(body, "You hand a finished session"):
		kind, answer = "handover", completion(handsOver(body))
	case string(r.Fields["stream"]) == "true":
		kind, answer = "turn", scriptedTurn(r)
	}
	if i.over.Load() {
		return answer
	}
	i.asked <- kind
	return modeltest.Answer{Wait: i.dead}
}

// await waits until some kinds of work wait for the model.
func (i *interrupted) await(t *testing.T, kinds ...string) {
	t.Helper()
	waits, deadline := map[string]bool{}, time.After(patience)
	for {
		missing := ""
		for _, kind := range kinds {
			if !waits[kind] {
				missing = kind
			}
		}
		if missing == "" {
			return
		}
		select {
		case kind := <-i.asked:
			waits[kind] = true
		case <-deadline:
			t.Fatalf("no %s asks the model", missing)
		}
	}
}

// Both servers, and their clients, are killed while a model works on a hand-over, a replay and an agent's turn. When a
// server runs again, each is done once: the hand-over and the replay by themselves, the turn when its client sends it
// again.
func TestWorkOutlivesItsServers(t *testing.T) {
	t.Parallel()
	m, model := modeltest.New(t), &interrupted{asked: make(chan string, 100), dead: make(chan struct{})}
	m.Reply = model.reply
	servers := launchTwo(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	p := &program{t: t, base: servers[0].url()}
	hands := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "h", "tools": []string{"memory_files"}}).ID
	call[map[string]any](p, "POST", "/v1/agents/"+hands+"/messages/capture", map[string]any{"messages": []any{
		map[string]any{"role": "assistant", "content": "Noted 1."}}})
	works, calm := agentOf(p), agentOf(p)
	body := map[string]any{"transcripts": []any{map[string]any{"name": "a.jsonl", "text": partsOfSource(40)}},
		"policies": []string{"letta", "pi"}, "windows": []int{8000}, "model": "m"}
	replay := p.replays(body)
	answered := make(chan error, 2)
	for path, text := range map[string]string{hands + "/handover": `{}`, works + "/messages": turnBody(works, 0)} {
		go func() {
			_, _, err := post(t.Context(), servers[0].url()+"/v1/agents/"+path, text)
			answered <- err
		}()
	}
	model.await(t, "handover", "replay", "turn")
	for _, s := range servers {
		s.kill()
	}
	for range 2 {
		if err := <-answered; err == nil {
			t.Error("a request was answered by a server that was killed")
		}
	}
	model.over.Store(true)
	close(model.dead)
	servers[1].start()
	p.base = servers[1].url()
	p.handedOver(hands)
	outlived := p.replayed(replay)
	sendTurn(t, servers[1:], works, 0)
	sendTurn(t, servers[1:], calm, 0)
	p.comparesReplays(p.replayed(p.replays(body)), outlived)
	want, _ := saidBy(p, calm)
	if got, _ := saidBy(p, works); len(got) < 6 || !cmp.Equal(want, got) {
		t.Errorf("the log of the turn (-undisturbed +killed):\n%s", cmp.Diff(want, got))
	}
	p.remembersOnce(works, 1)
	if t.Failed() {
		t.Logf("first server:\n%s\nsecond server:\n%s", servers[0].log, servers[1].log)
	}
}

// handedOver waits until an agent's only hand-over is done, and checks that its lesson was written once.
func (p *program) handedOver(agent string) {
	p.t.Helper()
	list := "/v1/agents/" + agent + "/handovers"
	for deadline := time.Now().Add(patience); ; db.Pause(p.t.Context(), 20*time.Millisecond) {
		all := call[[]map[string]any](p, "GET", list, nil)
		if len(all) == 1 && all[0]["status"] == "done" {
			break
		}
		if len(all) != 1 || all[0]["status"] != "running" || time.Now().After(deadline) {
			p.t.Fatalf("the hand-overs: %v", all)
		}
	}
	tree := call[identified](p, "GET", "/v1/agents/"+agent+"/memory-tree", nil).ID
	status, text := p.send(http.MethodGet, "/v1/memory-trees/"+tree+"/file?path=/memories/lessons.md", nil)
	if status != http.StatusOK || strings.Count(string(text), "cause-1.") != 1 {
		p.t.Errorf("the file: %d %s", status, text)
	}
}

// comparesReplays checks that a replay with killed servers has the same result as an undisturbed one.
func (p *program) comparesReplays(undisturbed, outlived lab.Report) {
	p.t.Helper()
	if diff := cmp.Diff(undisturbed, outlived, cmpopts.IgnoreFields(lab.Result{}, "Wall")); diff != "" {
		p.t.Errorf("the replay whose servers were killed measures otherwise (-undisturbed +killed):\n%s", diff)
	}
	for _, r := range outlived.Results {
		if r.Compactions == 0 || r.ModelCalls == 0 || r.ModelFailures > 0 || r.PairErrors > 0 {
			p.t.Errorf("%s: %d compactions, %d calls of the model, %d failures, %d errors", r.Policy, r.Compactions,
				r.ModelCalls, r.ModelFailures, r.PairErrors)
		}
	}
}

// partsOfSource returns a recorded session of some turns.
func partsOfSource(turns int) string {
	var b strings.Builder
	for i := range turns {
		fmt.Fprintf(&b, `{"role":"user","content":"What does src/part_%03d.go do?"}`+"\n", i)
		fmt.Fprintf(&b, `{"role":"assistant","content":"It holds limit_%03d. %s"}`+"\n", i,
			strings.Repeat("That is all there is to say. ", 60))
	}
	return b.String()
}

// replays begins a replay, and returns its id.
func (p *program) replays(body map[string]any) string {
	p.t.Helper()
	status, text := p.send(http.MethodPost, "/v1/lab/replays", body)
	var replay identified
	if err := json.Unmarshal(text, &replay); status != http.StatusAccepted || err != nil {
		p.t.Fatalf("the replay: %d %s, %v", status, text, err)
	}
	return replay.ID
}

// replayed waits for the report of a replay.
func (p *program) replayed(id string) (report lab.Report) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; db.Pause(p.t.Context(), 20*time.Millisecond) {
		status, text := p.send(http.MethodGet, "/v1/lab/replays/"+id+"/report", nil)
		if status == http.StatusOK {
			if err := json.Unmarshal(text, &report); err != nil {
				p.t.Fatal(err)
			}
			return report
		}
		if status != http.StatusConflict || time.Now().After(deadline) {
			p.t.Fatalf("the replay: %d %s", status, text)
		}
	}
}
