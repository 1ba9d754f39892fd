package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// crowded creates an agent with a view that is much larger than its window. Nobody has appended anything since.
func (p *program) crowded(settings map[string]any) (agent string) {
	p.t.Helper()
	agent = call[identified](
		p,
		"POST",
		"/v1/agents",
		map[string]any{"name": "a", "context_window_limit": 200_000, "compaction_settings": settings},
	).ID
	p.says(agent, 30)
	call[identified](p, "PATCH", "/v1/agents/"+agent, map[string]any{"context_window_limit": 12_000})
	return agent
}

// says appends turns of about 500 tokens each.
func (p *program) says(agent string, turns int) {
	p.t.Helper()
	var messages []map[string]any
	for i := range turns {
		text := strings.Repeat(fmt.Sprintf("The file is /srv/data/plan-%d.txt, and so it goes on. ", i), 18)
		messages = append(
			messages,
			map[string]any{"role": "user", "content": text},
			map[string]any{"role": "assistant", "content": "Noted: " + text},
		)
	}
	call[any](p, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": messages})
}

// compactions returns an agent's compactions.
func (p *program) compactions(agent string) []store.Compaction {
	p.t.Helper()
	return call[[]store.Compaction](p, "GET", "/v1/agents/"+agent+"/compactions", nil)
}

// fits checks that the server returns a prompt that fits the window.
func (p *program) fits(agent string) {
	p.t.Helper()
	got := call[handed](p, "GET", "/v1/agents/"+agent+"/prompt?format=openai", nil)
	if err := got.paired(); err != nil || got.Tokens.Total == 0 || got.Tokens.Total > got.Window*95/100 {
		p.t.Errorf("the prompt has %d tokens, of %d; %v", got.Tokens.Total, got.Window, err)
	}
}

// Whatever is wrong with a language model's endpoint, prompts stay within their windows, and the operator learns what
// is wrong. The endpoint is not asked again and again, and is used once it works.
func TestPromptsOutliveTheirModel(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	release := make(chan struct{})
	defer close(release)
	cases := map[string]struct {
		fault llmtest.Fault
		why   string
	}{
		"hangs": {llmtest.Hangs(release), "longer than 1s"},
		"does not take the key": {
			llmtest.Says(401, `{"error":{"message":"Incorrect API key provided"}}`),
			"does not accept the server's key (status 401)",
		},
		"is at another path": {llmtest.Says(404, "404 page not found"), "does not know the model (status 404)"},
		"does not have the model": {
			llmtest.Says(404, `{"error":{"message":"model 'm' not found"}}`),
			"does not know the model (status 404)",
		},
		"has enough":                  {llmtest.RateLimited(1), "status 429"},
		"has enough for long":         {llmtest.RateLimited(3600), "status 429"},
		"fails":                       {llmtest.Fails(), "status 500"},
		"breaks off":                  {llmtest.Hangup(), "cannot be reached"},
		"is behind a broken proxy":    {llmtest.Page(502), "status 502"},
		"answers garbage":             {llmtest.Garbage(), "something else than a chat completion"},
		"answers other types":         {llmtest.Malformed(), "something else than a chat completion"},
		"answers nothing to choose":   {llmtest.NoChoices(), "without a choice"},
		"says nothing":                {llmtest.Empty(), "was empty"},
		"only thinks":                 {llmtest.Null(), "was empty"},
		"says an error":               {llmtest.ErrorText(), "an error or an excuse"},
		"refuses":                     {llmtest.Refuses(), "refused to answer"},
		"repeats what it was asked":   {llmtest.Echo(), "repeated the transcript"},
		"does not come to an end":     {llmtest.TooLong(200_000), "too long"},
		"thinks until it is cut off":  {llmtest.OutOfLength(), "before a word was written"},
		"says what Postgres does not": {llmtest.Says(400, `{"error":{"message":"a\u0000b"}}`), "status 400"},
		"counts beyond all": {
			llmtest.Says(200, `{"choices":[{"message":{"content":""}}],"usage":{"prompt_tokens":9000000000000}}`),
			"was empty",
		},
	}
	for i, wording := range llmtest.Wordings {
		if i%scale.Of(18, 6) == 0 || wording.Status == 200 {
			cases["overflows in the words of "+wording.Name] = struct {
				fault llmtest.Fault
				why   string
			}{llmtest.Overflows(wording, 3000, 20_000), "larger than the model's window"}
		}
	}
	m := &moody{Provider: llmtest.New(t), well: map[string]bool{}}
	m.Always(func(w http.ResponseWriter, r *http.Request, asked llmtest.Asked) bool {
		return !m.is(asked.Model) && cases[asked.Model].fault(w, r, asked)
	})
	args := []string{
		"--database-url=" + dbtest.OwnerURL(t),
		"--llm-base-url=" + m.BaseURL(),
		"--llm-model=m",
		"--log-level=warn",
	}
	// Only the server for the hanging model needs to run out of time. The others may take as long as the machine needs.
	patient, impatient := serve(t, args...), serve(t, append(args, "--summary-patience=1s")...)
	t.Run("while it is", func(t *testing.T) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := patient
				if name == "hangs" {
					p = impatient
				}
				(&program{t: t, base: p.base, log: p.log}).outlives(m, name, c.why, patient)
			})
		}
	})
	for _, p := range []*program{patient, impatient} {
		if log := p.log.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("the server has errors of its own:\n%s", log)
		}
	}
}

// moody is a provider of models. Some of them work.
type moody struct {
	*llmtest.Provider
	mu   sync.Mutex
	well map[string]bool // the working models, by name
}

func (m *moody) is(model string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.well[model]
}

// asked returns how many requests were made for a model.
func (m *moody) asked(model string) (n int) {
	for _, r := range m.Requests() {
		if r.Model == model {
			n++
		}
	}
	return n
}

// attempts is how often a model call is sent at most, if its failures are temporary.
const attempts = 3

// outlives checks an agent's prompts and compactions while its model fails. It checks that the patient server uses the
// model once it works.
func (p *program) outlives(m *moody, model, reason string, patient *program) {
	p.t.Helper()
	modes := []plan.Mode{plan.SlidingWindow, plan.SelfCompactSlidingWindow}
	agent := p.crowded(map[string]any{"model": "fake/" + model, "mode": modes[len(model)%2]})
	for range 3 {
		p.fits(agent)
	}
	list := p.compactions(agent)
	if len(list) != 1 || *list[0].How != clip.Extracted || list[0].Why == nil ||
		!strings.Contains(*list[0].Why, reason) ||
		list[0].ModelCalls > summary.MaxModelCalls {
		text, _ := json.Marshal(list)
		p.t.Fatalf("the compactions are %s; want one that was extracted because of %q", text, reason)
	}
	if n := m.asked(model); n < list[0].ModelCalls || n > attempts*list[0].ModelCalls {
		p.t.Errorf("%d requests were made of the model for %d calls, want at most %d each", n, list[0].ModelCalls, attempts)
	}
	warnings := 0
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, list[0].ID) && strings.Contains(line, "level=WARN") {
			warnings++
		}
	}
	if warnings != 1 {
		p.t.Errorf("the operator was told %d times:\n%s", warnings, p.log)
	}
	m.mu.Lock()
	m.well[model] = true
	m.mu.Unlock()
	p.says(agent, 3)
	done := call[struct{ Compaction store.Compaction }](
		&program{t: p.t, base: patient.base},
		"POST",
		"/v1/agents/"+agent+"/summarize",
		map[string]any{"compaction_settings": map[string]any{"mode": "all"}},
	).Compaction
	if *done.How != clip.Whole || done.Why != nil || done.Model == nil || done.PromptTokens == 0 ||
		done.OutputTokens == 0 {
		p.t.Errorf("once the model is well: %+v, because of %v", done, done.Why)
	}
}

// laterListener returns an address that refuses connections until listen is called. Nobody else can get the address.
func laterListener(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(socket), "listener")
	t.Cleanup(func() { _ = file.Close() })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port), func() net.Listener {
		t.Helper()
		if err := syscall.Listen(socket, 128); err != nil {
			t.Fatal(err)
		}
		listener, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
}

// A model comes later, is slow, fails and hangs, one after the other. The servers use their own database, because
// another server on it would work on the same jobs with another model.
func TestServersAndTheirModel(t *testing.T) {
	t.Parallel()
	p, startModel := newPair(t)
	p.modelMayComeLater(t, startModel)
	p.programs[1] = serve(t, p.arguments(dbtest.URLOf(p.pool))...)
	step := func(name string, run func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			p.t, p.programs[0].t, p.programs[1].t = t, t, t
			run(t)
		})
	}
	step("two servers compact a conversation once", func(t *testing.T) {
		p.compactAConversationOnce(t, scale.Of(2, 12))
	})
	step("reverts race compactions", func(t *testing.T) { p.revertAndCompact(t, scale.Of(6, 24)) })
	p.programs[1].stop() // so that one log has everything
	step("organizations do not see the operator's endpoints", p.endpointsAreNotSeen)
	step("a model that hangs does not hold up the end", p.endsWhileTheModelHangs)
}

// An endpoint that is unreachable when the server starts is used as soon as it answers.
func (p *pair) modelMayComeLater(t *testing.T, startModel func()) {
	t.Helper()
	server := p.programs[0]
	agent := server.crowded(nil)
	server.fits(agent)
	if list := server.compactions(agent); len(list) != 1 || *list[0].How != clip.Extracted ||
		!strings.Contains(*list[0].Why, "cannot be reached") {
		t.Errorf("while it is away: %+v", list)
	}
	startModel()
	agent = server.crowded(nil)
	server.fits(agent)
	if list := server.compactions(agent); len(list) != 1 || *list[0].How != clip.Whole || list[0].Why != nil {
		t.Errorf("once it is there: %+v", list)
	}
}

// A server that stops does not wait for a hanging model, neither in a request nor in a job.
func (p *pair) endsWhileTheModelHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	asked := make(chan struct{}, 100)
	hangs := llmtest.Hangs(release)
	p.model.Always(func(w http.ResponseWriter, r *http.Request, a llmtest.Asked) bool {
		asked <- struct{}{}
		return hangs(w, r, a)
	})
	server, settings := p.programs[0], map[string]any{"model": "fake/hangs"}
	waits := server.crowded(settings)
	go func() {
		res, err := http.Get(server.base + "/v1/agents/" + waits + "/prompt") //nolint:noctx // it ends with the server
		if err == nil {
			_ = res.Body.Close()
		}
	}()
	server.says(server.crowded(settings), 1) // queues a job
	deadline := time.After(patience)
	for range 2 {
		select {
		case <-asked:
		case <-deadline:
			t.Fatal("the model is not asked")
		}
	}
	ended := make(chan int, 1)
	go func() { ended <- server.stop() }()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("told to stop, the server ended with %d", code)
		}
	case <-time.After(patience): // less than the model's patience
		t.Error("told to stop, the server waits for the model")
	}
}
