package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
)

// If calls wait for the client and no run is working, a cancellation denies all of them once, and the conversation goes
// on.
func TestAWaitForApprovalIsCancelled(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"an agent's": "", "a conversation's": "conversations",
		"a run's, by its id": "run_ids", "a job's": "jobs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, askingAgent)
			r.asks()
			run := fmt.Sprint(r.list("/v1/runs")[0]["id"])
			method, target, body := "POST", r.path()+"/cancel", `{}`
			switch path {
			case "conversations":
				target = "/v1/conversations/" + r.agent + "/cancel"
			case "run_ids":
				body = fmt.Sprintf(`{"run_ids":[%q,"run-123e4567-e89b-42d3-8456-426614174000"]}`, run)
			case "jobs":
				method, target = "PATCH", "/v1/jobs/"+run+"/cancel"
			}
			got := r.call(method, target, body)
			want := map[string]string{"": fmt.Sprintf(`{%q:"cancelled"}`, run), "jobs": `"cancelled"`,
				"run_ids": `"run-123e4567-e89b-42d3-8456-426614174000":"failed"`}[path]
			if got.Code != 200 || !strings.Contains(got.Text, want) {
				t.Fatalf("got %d %s, want %s", got.Code, got.Text, want)
			}
			log := r.log()
			checkSaid(t, "the log", log, []string{"user_message Hello", "approval_request_message memory_insert weather",
				"approval_response_message i=false w=false", "tool_return_message i error"})
			if all := r.must("GET", r.path(), ""); strings.Count(all, "The user cancelled") < 2 {
				t.Errorf("the results do not say why: %s", all)
			}
			again := map[string]int{"": 409, "conversations": 409, "run_ids": 200, "jobs": 200}[path]
			if got := r.call(method, target, body); got.Code != again {
				t.Errorf("again: got %d %s, want %d", got.Code, got.Text, again)
			}
			checkSaid(t, "the log after another cancellation", r.log(), log)
			cancelledRun := fields(t, r.must("GET", "/v1/runs/"+run, ""))
			state := fields(t, r.must("GET", "/v1/agents/"+r.agent+"?include=agent.pending_approval", ""))
			if cancelledRun["status"] != "cancelled" || cancelledRun["stop_reason"] != "cancelled" ||
				state["last_stop_reason"] != "cancelled" ||
				state["pending_approval"] != nil {
				t.Errorf("got the run %v and the agent %v", cancelledRun, state)
			}
			r.model.Says(modeltest.Answer{Text: "Well."})
			if got := r.send(hello); got.StopReason.StopReason != "end_turn" {
				t.Errorf("after it: got %+v", got)
			}
			if got := r.call("POST", r.path(), approvals("late", approveI)); got.Code != 400 {
				t.Errorf("a late approval: got %d %s", got.Code, got.Text)
			}
		})
	}
}

// The answer to a cancellation shows the job after the cancellation, not while its run stopped.
func TestAJobThatWorksIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: make(chan struct{})})
	said := r.begun(hello)
	run := fmt.Sprint(r.list("/v1/runs/active")[0]["id"])
	job := fields(t, r.must("PATCH", "/v1/jobs/"+run+"/cancel", ""))
	if job["status"] != "cancelled" || job["stop_reason"] != "cancelled" || job["completed_at"] == nil {
		t.Errorf("got %v", job)
	}
	<-said
}

// Calls that no run of the conversation made can be cancelled, too. The answer names their message.
func TestCallsOfAStepAreCancelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	target := "/v1/agents/" + r.agent + "/step"
	r.must("POST", target, `{"messages":[{"role":"user","content":"Hello"}]}`)
	r.must("POST", target, `{"response":{"choices":[{"message":{"role":"assistant","tool_calls":[
		{"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]}}]}}`)
	if got := r.must("POST", r.path()+"/cancel", `{}`); !strings.Contains(got, `{"message-`) {
		t.Errorf("got %s", got)
	}
	if got := r.must("POST", target, `{"messages":[{"role":"user","content":"Go on"}]}`); !strings.Contains(got,
		"The user cancelled") {
		t.Errorf("the next prompt does not say it: %s", got)
	}
	r.model.Says(modeltest.Answer{Text: "Well."})
	if got := r.send(hello); got.StopReason.StopReason != "end_turn" {
		t.Errorf("got %+v", got)
	}
}

// If a cancellation and an approval come at the same time, one of them wins, and each call gets one result.
func TestACancellationAndAnApprovalAtTheSameTime(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}}, modeltest.Answer{Text: "Noted."})
	r.send(hello)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { r.call("POST", r.path()+"/cancel", `{}`) })
	}
	both.Go(func() { r.call("POST", r.path(), approvals("o", approveI)) })
	both.Wait()
	results := 0
	for _, line := range r.log() {
		if strings.HasPrefix(line, "tool_return_message i") {
			results++
		}
	}
	if results != 1 {
		t.Errorf("the log is %q", r.log())
	}
}

// A cancellation may arrive when approvals have just begun a run. If it names no run, it cancels the new run; if it
// names the run that waited for the approvals, it finds nothing to cancel.
func TestACancellationRightAfterApprovals(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		r := newOwnRunner(t, askingAgent)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
		r.send(hello)
		body := `{}`
		if named {
			body = fmt.Sprintf(`{"run_ids":[%q]}`, r.list("/v1/runs")[0]["id"])
		}
		idle, server := loop.New(*r.server.Loop), r.server.Loop
		idle.CancelPatience = time.Millisecond
		await, release := r.locked()
		r.own().Loop = idle
		sent, cancelled := make(chan servertest.Reply, 1), make(chan servertest.Reply, 1)
		go func() {
			sent <- r.call("POST", r.path(), `{"messages":[`+approvalOf(approveI)+`,{"role":"user","content":"And also"}]}`)
		}()
		await(1)
		go func() { cancelled <- r.call("POST", r.path()+"/cancel", body) }()
		await(2)
		release()
		got := <-cancelled
		if !named && (got.Code != 200 || !strings.Contains(got.Text, `"cancelled"`)) ||
			named && (got.Code != 409 || !strings.Contains(got.Text, "No active runs")) {
			t.Errorf("named: %v: got %d %s", named, got.Code, got.Text)
		}
		t.Cleanup(runLoop(idle))
		if got := <-sent; strings.Contains(got.Text, `"stop_reason":"cancelled"`) == named {
			t.Errorf("named: %v: the run answers %d %s", named, got.Code, got.Text)
		}
		r.own().Loop = server
		if ran := strings.Contains(r.human(), "Tea."); ran != named {
			t.Errorf("named: %v: the tool ran: %v", named, ran)
		}
	}
}

// locked locks the agent's default conversation until release is called. await waits until n statements wait for that
// lock.
func (r runner) locked() (await func(n int), release func()) {
	r.t.Helper()
	tx, err := r.server.DB.Begin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	store := r.server.Recall.With(tx)
	c, err := store.Conversation(r.t.Context(), r.org, r.agent, recall.DefaultConversation)
	if err == nil {
		err = store.Lock(r.t.Context(), r.org, c)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	await = func(n int) { r.t.Helper(); dbtest.AwaitWaiters(r.t, r.pool, tx.Conn(), n, nil) }
	return await, func() {
		if err := tx.Rollback(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}
