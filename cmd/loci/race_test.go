package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// pair is two servers on one database, with an embeddings endpoint and a language model. The model answers when the
// test lets it.
type pair struct {
	*windows
	programs [2]*program
	words    *embedtest.Endpoint
	model    *llmtest.Provider
	at       string        // the address of the model
	held     atomic.Bool   // whether the model waits for release
	asked    chan struct{} // has a value for each waiting request
	answer   chan struct{} // takes a value for each answer to these
}

// newPair starts the first server. Its model refuses connections until come is called.
func newPair(t *testing.T) (p *pair, come func()) {
	t.Helper()
	p = &pair{windows: &windows{t: t}, asked: make(chan struct{}, 100), answer: make(chan struct{}, 100),
		words: embedtest.New(t, 8), model: &llmtest.Provider{}}
	p.model.Answer = func(asked llmtest.Asked) string {
		if p.held.Load() {
			p.asked <- struct{}{}
			<-p.answer
		}
		return llmtest.Summary(asked)
	}
	url := dbtest.OwnerURL(t)
	var listener func() net.Listener
	p.at, listener = laterListener(t)
	p.programs[0] = serve(t, p.arguments(url)...)
	var err error
	if p.pool, err = db.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	return p, func() {
		t.Helper()
		web, at := &http.Server{Handler: p.model, ReadHeaderTimeout: patience}, listener()
		go func() { _ = web.Serve(at) }()
		t.Cleanup(func() { _ = web.Close() })
	}
}

// arguments returns the arguments of a server of the pair. If told to stop, the server does not wait long.
func (p *pair) arguments(url string) []string {
	return []string{"--database-url=" + url, "--llm-base-url=http://" + p.at + "/v1", "--llm-model=m",
		"--embedding-base-url=" + p.words.URL + "/v1", "--embedding-model=e", "--log-level=warn", "--stop-timeout=1s"}
}

// await waits until a number of requests wait for the model.
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

// succeeded reports whether the outcome is a 200 with a text.
func (o outcome) succeeded(text string) bool {
	return o.status == http.StatusOK && strings.Contains(o.text, text)
}

// ask sends a request to one of the servers in the background.
func (p *pair) ask(server int, path string, body any) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		status, answer := p.programs[server].send("POST", path, body)
		out <- outcome{status, string(answer)}
	}()
	return out
}

// stands checks the frames of an agent's conversation. It returns how many compactions are in effect.
func (p *pair) stands(agent string) int {
	p.t.Helper()
	c, err := recall.New(p.pool, recall.Options{}).Conversation(p.t.Context(), 1, agent, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return len(p.checkFrames(&thread{agent: agent, conversation: recall.DefaultConversation}, c))
}

// If two servers compact a conversation at the same moment, it is compacted once. The second one is told that nothing
// is left to do.
func (p *pair) compactAConversationOnce(t *testing.T, rounds int) {
	for round := range rounds {
		p.held.Store(true)
		agent := p.programs[0].crowded(nil)
		path, body := "/v1/agents/"+agent+"/summarize", map[string]any{
			"compaction_settings": map[string]any{"mode": []string{"sliding_window", "all"}[round%2]},
		}
		first, second := p.ask(0, path, body), p.ask(1, path, body)
		p.await(1)
		p.held.Store(false) // if the second server asks the model, too, it gets an answer
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

// A server reverts a compaction while another server makes the next one, or reverts the same one. One of the two
// possible outcomes remains.
func (p *pair) revertAndCompact(t *testing.T, rounds int) {
	won := map[string]int{}
	for round := range rounds {
		agent := call[identified](
			p.programs[0],
			"POST",
			"/v1/agents",
			map[string]any{"name": "a", "context_window_limit": 100_000},
		).ID
		p.programs[0].says(agent, 10)
		path, all := "/v1/agents/"+agent, map[string]any{"compaction_settings": map[string]any{"mode": "all"}}
		compact := p.ask(0, path+"/summarize", all)
		if got := <-compact; got.status != http.StatusOK {
			t.Fatalf("compacting: got %d %s", got.status, got.text)
		}
		p.programs[0].says(agent, 10)
		revert := path + "/compactions/" + p.programs[0].compactions(agent)[0].ID + "/revert"
		if round%3 == 0 {
			a, b := p.ask(0, revert, nil), p.ask(1, revert, nil)
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
		compact = p.ask(0, path+"/summarize", all)
		p.await(1)
		p.held.Store(false) // the model may be asked again
		reverts := p.ask(1, revert, nil)
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
