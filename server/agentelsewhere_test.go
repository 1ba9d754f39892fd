package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
)

// moves lets another server take over the run of the runner's agent, as if the runner's server had lost the database.
// It returns the run's id.
func (r runner) moves(other runner) string {
	r.t.Helper()
	r.exec(`UPDATE runs SET owner = $2 WHERE org = $1 AND status = 'running'`, r.org, other.server.Loop.Server)
	run, n := fmt.Sprint(r.list("/v1/runs/active")[0]["id"]), len(r.model.Requests())
	other.server.Loop.Adopt(r.t.Context(), r.org)
	r.model.Await(r.t, n+1)
	return run
}

// elsewhere checks the client's answer for a run that another server has ended.
func (r runner) elsewhere(got servertest.Reply, run string) {
	r.t.Helper()
	for _, want := range []string{"Elsewhere.", "end_turn", run} {
		if got.Code != http.StatusOK || !strings.Contains(got.Text, want) {
			r.t.Errorf("got %d %s, want %q in it", got.Code, got.Text, want)
		}
	}
	for _, wrong := range []string{"cancelled", "error_type", "Lost."} {
		if strings.Contains(got.Text, wrong) {
			r.t.Errorf("got %s, want no %q in it", got.Text, wrong)
		}
	}
	checkSaid(r.t, "the log", r.log(), []string{"user_message Hello", "assistant_message Elsewhere."})
}

// forms are the options of requests that wait for the end of the run.
var forms = map[string]string{"JSON": `"max_steps":50`, "a stream": `"streaming":true`,
	"pieces": `"streaming":true,"stream_tokens":true`}

// If another server takes over a run and ends it, the run's client gets the other server's answer, whatever happens to
// the model that this server asked. Nobody cancelled the run.
func TestTheClientOfARunThatEndsElsewhereGetsItsAnswer(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(wait chan struct{}) modeltest.Answer{
		"an answer that comes too late": func(wait chan struct{}) modeltest.Answer {
			return modeltest.Answer{Text: "Lost.", Wait: wait}
		},
		"a failure": func(wait chan struct{}) modeltest.Answer {
			return modeltest.Answer{Status: http.StatusUnauthorized, Text: "Lost.", Wait: wait}
		},
		"half an answer": func(wait chan struct{}) modeltest.Answer {
			return modeltest.Answer{Text: "Half of it", After: wait}
		},
		"no answer": func(chan struct{}) modeltest.Answer { return modeltest.Answer{Wait: make(chan struct{})} },
	} {
		for way, options := range forms {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				r, wait := newOwnRunner(t, ""), make(chan struct{})
				r.model.Says(first(wait), modeltest.Answer{Text: "Elsewhere."})
				reply := r.begun(`{"input":"Hello",` + options + `}`)
				run := r.moves(r.second())
				r.ended(run)
				close(wait)
				r.elsewhere(<-reply, run)
			})
		}
	}
}

// This server learns only after its model has answered that another server works on the run. Its client waits for the
// other server's result.
func TestTheClientOfARunThatGoesOnElsewhereWaitsForIt(t *testing.T) {
	t.Parallel()
	for way, options := range forms {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r, wait, elsewhere := newOwnRunner(t, ""), make(chan struct{}), make(chan struct{})
			_, log := r.stoppable()
			other := r.second()
			r.model.Says(modeltest.Answer{Text: "Lost.", Wait: wait}, modeltest.Answer{Text: "Elsewhere.", Wait: elsewhere})
			reply := r.begun(`{"input":"Hello",` + options + `}`)
			run := r.moves(other)
			close(wait)
			embedtest.Eventually(t, "the server knows", func() bool { return strings.Contains(log.String(), "another server") })
			close(elsewhere)
			r.elsewhere(<-reply, run)
		})
	}
}

// The wait for another server ends when this server stops, and when the run is cancelled on the other server.
func TestAWaitForAnotherServerEnds(t *testing.T) {
	t.Parallel()
	for way, options := range forms {
		for word, end := range map[string]func(r, other runner, stop func()){
			`"interrupted"`: func(_, _ runner, stop func()) { stop() },
			`"cancelled"`:   func(_, other runner, _ func()) { other.must("POST", other.path()+"/cancel", `{}`) },
		} {
			t.Run(word+", "+way, func(t *testing.T) {
				t.Parallel()
				r, wait := newOwnRunner(t, ""), make(chan struct{})
				stop, log := r.stoppable()
				other := r.second()
				r.model.Says(modeltest.Answer{Text: "Lost.", Wait: wait}, modeltest.Answer{Wait: make(chan struct{})})
				reply := r.begun(`{"input":"Hello",` + options + `}`)
				r.moves(other)
				close(wait)
				embedtest.Eventually(t, "the server knows", func() bool { return strings.Contains(log.String(), "another server") })
				end(r, other, stop)
				if got := <-reply; got.Code != http.StatusOK || !strings.Contains(got.Text, word) ||
					strings.Contains(got.Text, "Lost.") {
					t.Errorf("got %d %s, want %s", got.Code, got.Text, word)
				}
				checkSaid(t, "the log", r.log(), []string{"user_message Hello"})
			})
		}
	}
}
