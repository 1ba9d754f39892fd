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

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

// Both servers are killed while a model writes the summary of a replay. When one runs again the replay goes on, and
// measures what it measures when nobody is killed.
func TestAReplayOutlivesItsServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	m := modeltest.New(t)
	asked, killed := make(chan struct{}, 1), make(chan struct{})
	var dead atomic.Bool
	m.Reply = func(modeltest.Asked) modeltest.Answer {
		if !dead.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			return modeltest.Answer{Wait: killed}
		}
		return completion("The user asks what each part of src does, and the assistant names its limit.")
	}
	servers := launchTwo(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	p := &program{t: t, base: servers[0].url()}
	body := map[string]any{"transcripts": []any{map[string]any{"name": "a.jsonl", "text": partsOfSource(40)}},
		"policies": []string{"letta", "pi"}, "windows": []int{8000}, "model": "m"}
	killedOnes := p.replays(body)
	<-asked
	for _, s := range servers {
		s.kill()
	}
	dead.Store(true)
	close(killed)
	servers[1].start()
	p.base = servers[1].url()
	outlived := p.replayed(killedOnes)
	undisturbed := p.replayed(p.replays(body))
	if diff := cmp.Diff(undisturbed, outlived, cmpopts.IgnoreFields(lab.Result{}, "Wall")); diff != "" {
		t.Errorf("the replay whose servers were killed measures otherwise (-undisturbed +killed):\n%s", diff)
	}
	for _, r := range outlived.Results {
		if r.Compactions == 0 || r.ModelCalls == 0 || r.ModelFailures > 0 || r.PairErrors > 0 {
			t.Errorf("%s: %d compactions, %d calls of the model, %d failures, %d errors", r.Policy, r.Compactions,
				r.ModelCalls, r.ModelFailures, r.PairErrors)
		}
	}
}

// partsOfSource is a recorded session of some turns.
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
	var made identified
	if err := json.Unmarshal(text, &made); status != http.StatusAccepted || err != nil {
		p.t.Fatalf("the replay: %d %s, %v", status, text, err)
	}
	return made.ID
}

// replayed waits for the report of a replay.
func (p *program) replayed(id string) (report lab.Report) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; wait(p.t.Context(), 20*time.Millisecond) {
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
