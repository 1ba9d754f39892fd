package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

// pair is two servers on one database whose model answers when the test lets it.
type pair struct {
	*windows
	programs [2]*program
	held     atomic.Bool   // whether the model waits for release
	asked    chan struct{} // has one for each request that waits
	answer   chan struct{} // takes one for each answer to these
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{windows: &windows{t: t}, asked: make(chan struct{}, 100), answer: make(chan struct{}, 100)}
	m := llmtest.New(t)
	m.Answer = func(asked llmtest.Asked) string {
		if p.held.Load() {
			p.asked <- struct{}{}
			<-p.answer
		}
		return llmtest.Summary(asked)
	}
	address := dbtest.OwnerURL(t)
	for i := range p.programs {
		p.programs[i] = serve(
			t,
			"--database-url="+address,
			"--llm-base-url="+m.BaseURL(),
			"--llm-model=m",
			"--log-level=error",
		)
	}
	var err error
	if p.pool, err = db.Connect(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	return p
}

// await waits until a given number of requests wait for the model.
func (p *pair) await(n int) {
	p.t.Helper()
	deadline := time.After(patience)
	for range n {
		select {
		case <-p.asked:
		case <-deadline:
			p.t.Fatal("the model is not asked")
		}
	}
}

// outcome is an answer of a server.
type outcome struct {
	status int
	text   string
}

// succeeded says whether it is a 200 with a given text.
func (o outcome) succeeded(text string) bool {
	return o.status == http.StatusOK && strings.Contains(o.text, text)
}

// at asks one of the servers in the background.
func (p *pair) at(server int, path string, body any) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		status, answer := p.programs[server].send("POST", path, body)
		out <- outcome{status, string(answer)}
	}()
	return out
}

// stands checks the frames of an agent's conversation, and returns how many compactions stand.
func (p *pair) stands(agent string) int {
	p.t.Helper()
	c, err := recall.New(p.pool, recall.Options{}).Conversation(p.t.Context(), 1, agent, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return len(p.checkFrames(&thread{agent: agent, conversation: recall.DefaultConversation}, c))
}

// Two servers that compact one conversation at the same moment compact it once, and whoever comes second is told that
// nothing is left to do.
func TestTwoServersCompactAConversationOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for round := range 12 {
		p.held.Store(true)
		agent := p.programs[0].crowded(nil)
		path, body := "/v1/agents/"+agent+"/summarize", map[string]any{
			"compaction_settings": map[string]any{"mode": []string{"sliding_window", "all"}[round%2]},
		}
		first, second := p.at(0, path, body), p.at(1, path, body)
		p.await(1)
		p.held.Store(false) // for which the second would ask, if it made a summary, too
		p.answer <- struct{}{}
		a, b := <-first, <-second
		if a.succeeded(`"unchanged":"`) {
			a, b = b, a
		}
		if !a.succeeded(`"how":"whole"`) || !b.succeeded(`"unchanged":"`) || p.stands(agent) != 1 {
			t.Fatalf(
				"round %d: %d compactions stand; got %d %.300s and %d %.300s",
				round,
				p.stands(agent),
				a.status,
				a.text,
				b.status,
				b.text,
			)
		}
	}
}

// A compaction that another server reverts while the next is made, or while it reverts it too, leaves one of both
// outcomes.
func TestRevertsRaceCompactions(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	won := map[string]int{}
	for round := range 24 {
		agent := call[identified](
			p.programs[0],
			"POST",
			"/v1/agents",
			map[string]any{"name": "a", "context_window_limit": 100_000},
		).ID
		p.programs[0].says(agent, 10)
		path, all := "/v1/agents/"+agent, map[string]any{"compaction_settings": map[string]any{"mode": "all"}}
		compact := p.at(0, path+"/summarize", all)
		if got := <-compact; got.status != http.StatusOK {
			t.Fatalf("compacting: got %d %s", got.status, got.text)
		}
		p.programs[0].says(agent, 10)
		revert := path + "/compactions/" + p.programs[0].compactions(agent)[0].ID + "/revert"
		if round%3 == 0 {
			a, b := p.at(0, revert, nil), p.at(1, revert, nil)
			first, second := <-a, <-b
			if second.status == http.StatusOK {
				first, second = second, first
			}
			if first.status != http.StatusOK || second.status != http.StatusConflict || p.stands(agent) != 0 {
				t.Errorf("reverted twice at once: got %d %s and %d %s", first.status, first.text, second.status, second.text)
			}
			continue
		}
		p.held.Store(true)
		compact = p.at(0, path+"/summarize", all)
		p.await(1)
		p.held.Store(false) // for which it may be asked again
		reverts := p.at(1, revert, nil)
		var r outcome
		if round%3 == 1 {
			r = <-reverts
			p.answer <- struct{}{}
		} else {
			p.answer <- struct{}{}
			r = <-reverts
		}
		c, stand := <-compact, p.stands(agent)
		one := r.status == http.StatusOK && stand == 1 || r.status == http.StatusConflict && stand == 2
		if !one || !c.succeeded(`"how":"whole"`) {
			t.Errorf(
				"round %d: %d compactions stand; got %d %.300s and, of the revert, %d %s",
				round,
				stand,
				c.status,
				c.text,
				r.status,
				r.text,
			)
		}
		won[fmt.Sprint(r.status)]++
	}
	t.Logf("reverts beside a compaction: %v", won)
}
