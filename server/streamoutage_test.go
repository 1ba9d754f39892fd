package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
)

// lockedTable locks a table for everybody else until unlock is called.
func (r runner) lockedTable(table string) (unlock func()) {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	if err == nil {
		_, err = tx.Exec(r.t.Context(), `LOCK TABLE `+table+` IN ACCESS EXCLUSIVE MODE`)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(r.t.Context()); err != nil {
			r.t.Error(err)
		}
	}
}

// If a stream's database does not answer, the stream ends with an error that says so.
func TestAStreamWithoutADatabaseSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	r := newRunnerOf(newElsewhereServerClient(t), "")
	r.own().RequestTimeout = 300 * time.Millisecond
	r.Handler = r.server.Handler()
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Done.", Wait: wait})
	reply := make(chan servertest.Reply, 1)
	go func() {
		for {
			got := r.call("POST", r.path()+"/stream", `{"input":"Hello","background":true}`)
			if got.Code != http.StatusServiceUnavailable || len(r.model.Requests()) > 0 || t.Context().Err() != nil {
				reply <- got
				return
			} // the machine is too slow for so short a timeout
		}
	}()
	r.model.Await(t, 1)
	unlock := r.lockedTable("run_items")
	got := <-reply
	unlock()
	close(wait)
	items, names := readStream(t, got.Text)
	if last := items[len(items)-1]; len(names) != 1 || last["error_type"] != "database_unavailable" {
		t.Errorf("the stream is %s", got.Text)
	}
}

// lockedConversation keeps everybody else from changing the agent's default conversation until unlock is called.
func (r runner) lockedConversation() (unlock func()) {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	if err == nil {
		_, err = tx.Exec(r.t.Context(), `
			SELECT FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND a.id = $2 FOR UPDATE OF c`, r.org, r.agent)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(r.t.Context()); err != nil {
			r.t.Error(err)
		}
	}
}

// If a run waits too long for the database, it tells its clients that it will go on later, and keeps waiting. The model
// is asked once. A client that sends the request again with its otid gets the whole answer.
func TestARunThatWaitsForTheDatabaseTellsItsClients(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"JSON": `"max_steps":50`, "a stream": `"streaming":true`,
		"pieces": `"streaming":true,"stream_tokens":true`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newOwnRunner(t, "")
			r.stoppable()
			r.own().Loop.Patience = time.Millisecond
			wait := make(chan struct{})
			r.model.Says(modeltest.Answer{Text: "Late.", Wait: wait})
			body := `{"messages":[{"role":"user","content":"Hello","otid":"o"}],` + options + `}`
			reply := make(chan servertest.Reply, 1)
			go func() { reply <- r.call("POST", r.path(), body) }()
			r.model.Await(t, 1)
			unlock := r.lockedConversation()
			close(wait)
			got := <-reply
			unlock()
			if got.Code != 200 || !strings.Contains(got.Text, `"interrupted"`) ||
				!strings.Contains(got.Text, "The database does not answer, or stores nothing") {
				t.Fatalf("while it waits: got %d %s", got.Code, got.Text)
			}
			embedtest.Eventually(t, "the run has ended", func() bool {
				return len(r.list("/v1/runs/active?agent_id="+r.agent)) == 0
			})
			if got := r.call("POST", r.path(), body); got.Code != 200 || !strings.Contains(got.Text, "Late.") ||
				strings.Contains(got.Text, "interrupted") || len(r.model.Requests()) != 1 {
				t.Errorf("later: got %d %s, and the model was asked %d times", got.Code, got.Text, len(r.model.Requests()))
			}
		})
	}
}

// If a run cannot store anything, it stops. The stream of a background run ends, although the run's items can be read.
// A client that sends another message is told that the database keeps the run from ending. The run goes on where it
// stopped.
func TestABackgroundStreamEndsWhileNothingIsStored(t *testing.T) {
	t.Parallel()
	c, readOnly := newReadOnlyClient(t)
	r := newRunnerOf(c, "")
	r.stoppable()
	r.own().RequestTimeout = 300 * time.Millisecond
	r.Handler = r.server.Handler()
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Lost.", Wait: wait}, modeltest.Answer{Text: "Done."})
	reply := make(chan servertest.Reply, 1)
	go func() { reply <- r.call("POST", r.path()+"/stream", `{"input":"Hello","background":true}`) }()
	r.model.Await(t, 1)
	readOnly(true)
	close(wait)
	items, names := readStream(t, (<-reply).Text)
	last := items[len(items)-1]
	if len(names) != 1 || last["error_type"] != "database_unavailable" {
		t.Errorf("the stream is %v", items)
	}
	if got := r.call("POST", r.path(), hello); got.Code != 503 || !strings.Contains(got.Text, "read-only") {
		t.Errorf("another message meanwhile: got %d %s", got.Code, got.Text)
	}
	readOnly(false)
	if got := r.call("POST", r.path(), hello); got.Code != 503 || !strings.Contains(got.Text, "It goes on by itself") {
		t.Errorf("another message afterwards: got %d %s", got.Code, got.Text)
	}
	r.server.Loop.Adopt(t.Context(), r.org)
	run, _ := last["run_id"].(string)
	embedtest.Eventually(t, "the run is completed", func() bool {
		return fields(t, r.must("GET", "/v1/runs/"+run, ""))["status"] == "completed"
	})
	if again := r.must("POST", "/v1/runs/"+run+"/stream", `{}`); !strings.Contains(again, "Done.") {
		t.Errorf("attached again: got %s", again)
	}
}
