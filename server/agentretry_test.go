package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// The server asks for an answer three times, whatever is wrong with the stream or the connection.
func TestAModelIsAskedThreeTimes(t *testing.T) {
	t.Parallel()
	faults := map[string]modeltest.Answer{
		"events that are no JSON":       {Raw: "data: {]\n\n"},
		"JSON of another shape":         {Raw: "data: {\"choices\":7}\n\n"},
		"a page":                        {Raw: "<html></html>"},
		"no data":                       {Raw: "data: \n\n"},
		"an error that is no JSON":      {Raw: "{\"error\":{]"},
		"an error that is a text":       {Raw: "data: {\"error\":\"overloaded\"}\n\n"},
		"an error in place of an event": {Raw: "{\"error\":{\"message\":\"overloaded\"}}\n\n"},
		"a stream that breaks off":      {Text: "Hello", Cut: true},
		"a fault":                       {Status: 503},
		"a connection that is closed":   {Closes: true},
	}
	for _, handle := range []string{"openai/m", "anthropic/m"} {
		for name, fault := range faults {
			r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
			if handle == "anthropic/m" && fault.Raw != "" {
				continue // these faults are specific to OpenAI
			}
			r.model.Reply = func(modeltest.Asked) modeltest.Answer { return fault }
			before := len(r.model.Requests())
			got := r.send(hello)
			if n := len(r.model.Requests()) - before; n != 3 || got.Error == nil {
				t.Errorf("%s, %s: the model is asked %d times, and the run ends with %+v", handle, name, n, got.StopReason)
			}
		}
	}
}

// After a rate limit, the server asks the model again until its patience ends, however often. The client is told how
// long the provider wants it to wait.
func TestTheProvidersPauseReachesTheClient(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
		r.model.Says(modeltest.Answer{Status: 429, Header: http.Header{"Retry-After": {"61"}}})
		if got := r.call("POST", r.path(), hello); got.Code != 429 || got.Header().Get("Retry-After") != "61" {
			t.Errorf("got %d with %v", got.Code, got.Header())
		}
		if got := r.call("POST", r.path(), hello); got.Code != 200 {
			t.Errorf("the next: got %d %s", got.Code, got.Text)
		}
	}
}

// patient gives the runner's server a loop that waits an hour before it asks a model again.
func (r runner) patient() (stop func()) {
	l := *r.server.Loop
	l.FirstPause, l.Server = time.Hour, "patient-"+r.agent
	r.own().Loop = loop.New(l)
	stop = sync.OnceFunc(runLoop(r.server.Loop))
	r.t.Cleanup(stop)
	return stop
}

// A pause before a repeated question to a model ends when the run is cancelled, and when the server stops.
func TestAPauseEndsWithItsRun(t *testing.T) {
	t.Parallel()
	for word, end := range map[string]func(r runner, stop func()){
		`"cancelled"`:   func(r runner, _ func()) { r.must("POST", r.path()+"/cancel", `{}`) },
		`"interrupted"`: func(_ runner, stop func()) { stop() },
	} {
		r := newOwnRunner(t, "")
		stop := r.patient()
		r.model.Says(modeltest.Answer{Status: 500})
		reply := r.begun(hello)
		end(r, stop)
		if got := <-reply; got.Code != 200 || !strings.Contains(got.Text, word) || len(r.model.Requests()) != 1 {
			t.Errorf("got %d %s after %d requests, want %s", got.Code, got.Text, len(r.model.Requests()), word)
		}
	}
}
