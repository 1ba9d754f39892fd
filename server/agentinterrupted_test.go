package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
)

// stoppable gives the runner's server a loop that stop ends. The loop logs to a buffer.
func (r runner) stoppable() (stop func(), log *safeBuffer) {
	log = &safeBuffer{}
	l := *r.server.Loop
	l.Server, l.Log = "stoppable-"+r.agent, slog.New(slog.NewTextHandler(log, nil))
	r.own().Loop = loop.New(l)
	stop = sync.OnceFunc(runLoop(r.server.Loop))
	r.t.Cleanup(stop)
	return stop, log
}

// safeBuffer is a buffer that several goroutines may use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// beginAt sends a request to a path, and waits until the model is asked for the second time.
func (r runner) beginAt(path, body string) (reply chan servertest.Reply) {
	r.t.Helper()
	n := len(r.model.Requests())
	reply = make(chan servertest.Reply, 1)
	go func() { reply <- r.call("POST", path, body) }()
	r.model.Await(r.t, n+2)
	return reply
}

// A server that stops tells its clients that their runs go on, so that the clients do not send their requests again.
// The runs continue where they stopped.
func TestAServerThatStopsTellsTheClientsOfItsRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, options string }{
		"JSON":        {"", `"max_steps":50`},
		"a stream":    {"", `"streaming":true`},
		"pieces":      {"", `"streaming":true,"stream_tokens":true`},
		"background":  {"", `"streaming":true,"background":true`},
		"the SDK's":   {"/stream", `"max_steps":50`},
		"without end": {"/stream", `"include_pings":false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newOwnRunner(t, "")
			stop, log := r.stoppable()
			r.model.Says(callOf("a", "memory_insert", `{"label":"human","new_string":"Tea."}`),
				modeltest.Answer{Wait: make(chan struct{})})
			reply := r.beginAt(r.path()+c.path, `{"messages":[{"role":"user","content":"Hello","otid":"o"}],`+c.options+`}`)
			stop()
			got := <-reply
			if got.Code != 200 || !strings.Contains(got.Text, `"interrupted"`) || strings.Contains(log.String(), "ERROR") {
				t.Fatalf("got %d %s, and the log %s", got.Code, got.Text, log)
			}
			run := ""
			if strings.HasPrefix(got.Header().Get("Content-Type"), "application/json") {
				var a answer
				if err := json.Unmarshal([]byte(got.Text), &a); err != nil || a.StopReason.StopReason != "error" ||
					a.Error == nil || len(a.Messages) != 2 {
					t.Errorf("got %+v, %v", a, err)
				}
				run = a.RunID
			} else {
				items, names := readStream(t, got.Text)
				last := items[len(items)-1]
				if run = fmt.Sprint(last["run_id"]); len(names) != 1 || last["error_type"] != "interrupted" {
					t.Errorf("the stream ends with %v", last)
				}
			}
			if got := r.call("POST", r.path(), hello); got.Code != 503 || got.Header().Get("Retry-After") == "" {
				t.Errorf("a new request to a server that stops: got %d %s", got.Code, got.Text)
			}
			if shown := fields(t, r.must("GET", "/v1/runs/"+run, "")); shown["status"] != "running" {
				t.Errorf("the run is %v", shown)
			}
			r.goesOn(run)
			checkSaid(t, "the log", r.log(), []string{"user_message Hello", "tool_call_message memory_insert",
				"tool_return_message a success", "assistant_message Done."})
		})
	}
}

// resumes starts the runner's server again.
func (r runner) resumes() {
	r.own().Loop = loop.New(*r.server.Loop)
	r.t.Cleanup(runLoop(r.server.Loop))
	r.server.Loop.Adopt(r.t.Context(), r.org)
}

// goesOn starts the runner's server again, and waits until a run is completed.
func (r runner) goesOn(run string) {
	r.t.Helper()
	r.resumes()
	embedtest.Eventually(r.t, "the run is completed", func() bool {
		return fields(r.t, r.must("GET", "/v1/runs/"+run, ""))["status"] == "completed"
	})
}

// If a run goes on and no model is configured, it ends with the error of a request without a model. This is not the
// server's fault.
func TestARunThatGoesOnWithoutAModelSaysSo(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	stop, _ := r.stoppable()
	r.model.Says(callOf("a", "memory_insert", `{"label":"human","new_string":"Tea."}`),
		modeltest.Answer{Wait: make(chan struct{})})
	reply := r.beginAt(r.path(), hello)
	stop()
	var first answer
	r.unmarshal((<-reply).Text, &first)
	r.own().Loop.Models = nil
	r.resumes()
	var run map[string]any
	embedtest.Eventually(t, "the run has ended", func() bool {
		run = fields(t, r.must("GET", "/v1/runs/"+first.RunID, ""))
		return run["status"] != "running"
	})
	problem, _ := run["error"].(map[string]any)
	refused := fields(t, r.call("POST", r.path(), hello).Text)
	if run["stop_reason"] != "llm_api_error" || problem["error_type"] != "no_model" ||
		problem["message"] != refused["detail"] {
		t.Errorf("the run is %v, and a new request %v", run, refused)
	}
}

// A run is cancelled if its conversation is reset, or its agent or organization is deleted. This is not a failure.
func TestARunThatLosesItsAgentIsCancelled(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r runner){
		"reset":   func(r runner) { r.must("PATCH", "/v1/agents/"+r.agent+"/reset-messages", `{}`) },
		"deleted": func(r runner) { r.must("DELETE", "/v1/agents/"+r.agent, "") },
		"an organization": func(r runner) {
			if _, err := r.pool.Exec(r.t.Context(), `UPDATE organizations SET deleted_at = now() WHERE org = $1`,
				r.org); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		for _, answers := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the model answers: ", answers), func(t *testing.T) {
				t.Parallel()
				r := newOwnRunner(t, "")
				_, log := r.stoppable()
				wait := make(chan struct{})
				r.model.Says(callOf("a", "memory_insert", `{"label":"human","new_string":"Tea."}`),
					modeltest.Answer{Text: "Hello", Wait: wait})
				reply := r.beginAt(r.path(), hello)
				lose(r)
				if answers {
					close(wait)
				}
				var a answer
				got := <-reply
				if err := json.Unmarshal([]byte(got.Text), &a); err != nil || a.StopReason.StopReason != "cancelled" ||
					a.Error != nil {
					t.Errorf("got %s, %v", got.Text, err)
				}
				if text := log.String(); strings.Contains(text, "ERROR") || strings.Contains(text, "WARN") {
					t.Errorf("the log has %s", text)
				}
			})
		}
	}
}

// If a run's conversation is deleted, the run is cancelled before its model has answered.
func TestARunThatLosesItsConversationIsCancelled(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	_, log := r.stoppable()
	conversation := "/v1/conversations/" + r.made("/v1/conversations?agent_id="+r.agent, "")
	toAgent := `{"streaming":false,"agent_id":"` + r.agent + `",` + hello[1:]
	other := strings.Replace(toAgent, r.agent, r.made("/v1/agents", `{"name":"b"}`), 1)
	for path, status := range map[string]int{conversation: 404, "/v1/conversations/" + r.agent: 422} {
		if got := r.call("POST", path+"/messages", other); got.Code != status {
			t.Errorf("%s, another agent: got %d %s", path, got.Code, got.Text)
		}
	}
	r.model.Says(callOf("a", "memory_insert", `{"label":"human","new_string":"Tea."}`),
		modeltest.Answer{Text: "Hello", Wait: make(chan struct{})})
	reply := r.beginAt(conversation+"/messages", toAgent)
	r.must("DELETE", conversation, "")
	if got := <-reply; !strings.Contains(got.Text, `"stop_reason":"cancelled"`) {
		t.Errorf("got %s", got.Text)
	}
	if text := log.String(); strings.Contains(text, "ERROR") || strings.Contains(text, "WARN") {
		t.Errorf("the log has %s", text)
	}
}

// The number of an organization's simultaneous runs is limited. Above the limit, the answer is a 429 that says when to
// try again.
func TestAnOrganizationsRunsAreBounded(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	l := *r.server.Loop
	l.MaxRuns = 1
	r.own().Loop = loop.New(l)
	t.Cleanup(runLoop(r.server.Loop))
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: wait})
	first := r.begun(hello)
	other := r
	other.agent = r.made("/v1/agents", `{"name":"b"}`)
	before := other.log()
	got := r.call("POST", other.path(), hello)
	if got.Code != 429 || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Text, "1 runs") {
		t.Errorf("one more: got %d %s", got.Code, got.Text)
	}
	checkSaid(t, "the log of the other", other.log(), before)
	close(wait)
	<-first
	if got := other.send(hello); got.StopReason.StopReason != "end_turn" {
		t.Errorf("after the first: got %+v", got)
	}
}
