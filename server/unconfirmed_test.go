package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// unconfirmed is a database that makes a commit but does not confirm it, like one with an unreachable standby.
type unconfirmed struct {
	db.DB
	next *atomic.Bool // the next commit is not confirmed
	away *atomic.Bool // after that, the database does not answer at all
}

func (u unconfirmed) Begin(ctx context.Context) (pgx.Tx, error) {
	if u.away.Load() && !u.next.Load() {
		return nil, db.ErrUnreachable
	}
	tx, err := u.DB.Begin(ctx)
	return unconfirmedTx{tx, u.next}, err
}

type unconfirmedTx struct {
	pgx.Tx
	next *atomic.Bool
}

func (u unconfirmedTx) Commit(ctx context.Context) error {
	err := u.Tx.Commit(ctx)
	if err == nil && u.next.CompareAndSwap(true, false) {
		return context.DeadlineExceeded
	}
	return err
}

// doubt gives the runner's server a loop with an unconfirmed next commit. If away is set, the database then does not
// answer until recover is called. It also returns the server's loop from before.
func (r runner) doubt(away bool) (recover func(), other *loop.Loop) {
	u := unconfirmed{r.pool, new(atomic.Bool), new(atomic.Bool)}
	u.next.Store(true)
	u.away.Store(away)
	other = r.server.Loop
	l := *other
	l.Server, l.DB, l.Recall = "doubtful-"+r.agent, u, recall.New(u, recall.Options{})
	r.own().Loop = loop.New(l)
	r.t.Cleanup(runLoop(r.server.Loop))
	return func() { u.away.Store(false) }, other
}

// checkUnknown checks the answer to a request that may or may not be stored.
func checkUnknown(t *testing.T, code int, text string, retryAfter string) {
	t.Helper()
	if code != 503 || !strings.Contains(text, "may be stored or not") || retryAfter == "" {
		t.Errorf("got %d %s, Retry-After %q", code, text, retryAfter)
	}
}

// A message's turn was stored, but its client does not know. If the client sends the message again, it gets that turn,
// on each server, whether the turn is running or done. Only the message after that is a new one.
func TestAMessageThatMayBeStoredIsNotStoredTwice(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("elsewhere: %v, done: %v", elsewhere, done), func(t *testing.T) {
				t.Parallel()
				r := newOwnRunner(t, "")
				_, other := r.doubt(false)
				first := r.call("POST", r.path(), `{"input":"Caf\u00e9"}`)
				checkUnknown(t, first.Code, first.Text, first.Header().Get("Retry-After"))
				if done {
					r.adopted()
				}
				if elsewhere {
					r.own().Loop = other
				}
				const again = `{"input":"Cafe\u0301"}`
				if !done {
					if got := r.call("POST", r.path(), again); got.Code != 409 || !strings.Contains(got.Text, "run-") {
						t.Errorf("while the turn is to run: got %d %s", got.Code, got.Text)
					}
					r.adopted()
				}
				asked := len(r.model.Requests())
				checkSaid(t, "the answer", itemTexts(r.send(again).Messages), []string{"assistant_message Done."})
				wantLog := []string{"user_message Caf\u00e9", "assistant_message Done."}
				checkSaid(t, "the log", r.log(), wantLog)
				if n := len(r.model.Requests()); n != asked {
					t.Errorf("the model was asked %d times more", n-asked)
				}
				r.send(again)
				checkSaid(t, "the log after a new message", r.log(), append(wantLog, "user_message Cafe\u0301",
					"assistant_message Done."))
			})
		}
	}
}

// adopted lets the runner's server take over the run that was not handed out, and waits for the run's end.
func (r runner) adopted() {
	r.t.Helper()
	r.server.Loop.Adopt(r.t.Context(), r.org)
	runs := r.list("/v1/runs/?agent_id=" + r.agent)
	if len(runs) != 1 {
		r.t.Fatalf("the runs are %v", runs)
	}
	r.ended(fmt.Sprint(runs[0]["id"]))
}

// The same holds for steps and captured turns, even if the database does not answer for a while.
func TestAStepThatMayBeStoredIsNotStoredTwice(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/step", "/messages/capture"} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, away: %v", path, away), func(t *testing.T) {
				t.Parallel()
				r := newOwnRunner(t, "")
				recovers, _ := r.doubt(away)
				const body = `{"messages":[{"role":"user","content":"One"},{"role":"user","content":[
					{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},
					{"type":"text","text":"Two"}]}]}`
				first := r.call("POST", "/v1/agents/"+r.agent+path, body)
				checkUnknown(t, first.Code, first.Text, first.Header().Get("Retry-After"))
				recovers()
				wantLog := []string{"user_message One", "user_message [map[source:map[data:aGk= media_type:image/png " +
					"type:base64] type:image] map[text:Two type:text]]"}
				got := r.must("POST", "/v1/agents/"+r.agent+path, body)
				if strings.Count(got, `"repeated":true`) != 2 {
					t.Errorf("got %s", got)
				}
				checkSaid(t, "the log", r.log(), wantLog)
				r.must("POST", "/v1/agents/"+r.agent+path, body)
				checkSaid(t, "the log after new messages", r.log(), append(wantLog, wantLog...))
			})
		}
	}
}

// If another text came in between, a text that may already be stored is not dropped.
func TestAMessageAfterOneThatMayBeStoredIsANewOne(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.doubt(false)
	for n, text := range []string{"One", "Two", "One"} {
		got := r.call("POST", "/v1/agents/"+r.agent+"/step", `{"messages":[{"role":"user","content":"`+text+`"}]}`)
		if (got.Code == 200) != (n > 0) {
			t.Errorf("%s: got %d %s", text, got.Code, got.Text)
		}
	}
	checkSaid(t, "the log", r.log(), []string{"user_message One", "user_message Two", "user_message One"})
}
