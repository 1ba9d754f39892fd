package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

// If a run's record is deleted, the calls that it waited for keep waiting, and every question about the run has a clear
// answer.
func TestCallsOfADeletedRunWaitAndAreCancelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	r.asks()
	first := fmt.Sprint(r.list("/v1/runs")[0]["id"])
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall(), {ID: "w", Name: "weather", Arguments: `{}`}}})
	second := r.send(`{"messages":[` + approvalOf(denyI, resultW) +
		`,{"role":"user","content":"Again","otid":"o"}],` + clientWeather + `}`)
	r.must("DELETE", "/v1/runs/"+second.RunID, "")
	run := "/v1/runs/" + second.RunID
	for _, c := range []struct {
		method, target, body string
		status               int
		text                 string
	}{
		{"GET", run, "", 404, second.RunID},
		{"GET", run + "/stream", "", 404, second.RunID},
		{"POST", run + "/stream", `{}`, 404, second.RunID},
		{"DELETE", run, "", 404, second.RunID},
		{"PATCH", "/v1/jobs/" + second.RunID + "/cancel", "", 404, second.RunID},
		{"POST", r.path() + "/cancel", fmt.Sprintf(`{"run_ids":[%q]}`, second.RunID), 409, "No active runs"},
		{"POST", "/v1/conversations/" + r.agent + "/stream", fmt.Sprintf(`{"run_id":%q}`, second.RunID), 400, "No active"},
		{"POST", "/v1/conversations/" + r.agent + "/stream", `{"otid":"o"}`, 400, "No active"},
		{"POST", r.path(), `{"messages":[{"role":"user","content":"Other"}]}`, 409, "waiting for approval"},
	} {
		if got := r.call(c.method, c.target, c.body); got.Code != c.status || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s %s %s: got %d %s, want %d with %s", c.method, c.target, c.body, got.Code, got.Text, c.status, c.text)
		}
	}
	if got := r.must("POST", r.path()+"/cancel", `{}`); !strings.Contains(got, `{"message-`) {
		t.Errorf("a cancellation answers %s", got)
	}
	if earlier := fields(t, r.must("GET", "/v1/runs/"+first, "")); earlier["status"] != "completed" {
		t.Errorf("the run before is %v", earlier)
	}
	checkSaid(t, "the log", r.log()[6:], []string{"user_message Again",
		"approval_request_message memory_insert weather", "approval_response_message i=false w=false",
		"tool_return_message i error"})
}

// A request with a deleted run is not run again. Its repetition says where the answer is.
func TestARequestOfADeletedRunIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	const said = `{"messages":[{"role":"user","content":"Hello","otid":"o"}]}`
	r.must("DELETE", "/v1/runs/"+r.send(said).RunID, "")
	for _, target := range []string{r.path(), r.path() + "/stream", r.path() + "/async"} {
		got := r.call("POST", target, said)
		if got.Code != 409 || !strings.Contains(got.Text, "was deleted") ||
			!strings.Contains(got.Text, "/v1/agents/"+r.agent+"/messages") {
			t.Errorf("%s: got %d %s", target, got.Code, got.Text)
		}
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "assistant_message Done."})
}

// If the record of a background run is deleted, a client that is attached learns so, and its stream ends. The same
// holds for the request that began the run.
func TestAStreamOfADeletedRunEnds(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	idle := loop.New(*r.server.Loop)
	idle.CancelPatience = time.Millisecond
	r.own().Loop = idle
	began := make(chan servertest.Reply, 1)
	go func() { began <- r.call("POST", r.path()+"/async", hello) }()
	run := r.begins()
	web := httptest.NewServer(r.client)
	defer web.Close()
	request, err := http.NewRequestWithContext(t.Context(), "GET", web.URL+"/v1/runs/"+run+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewReader(reply.Body)
	if ping, err := lines.ReadString('\n'); err != nil || !strings.Contains(ping, "ping") {
		t.Fatalf("the stream begins with %q, %v", ping, err)
	}
	if _, err := r.pool.Exec(t.Context(), `DELETE FROM runs WHERE org = $1`, r.org); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	items, names := readStream(t, string(rest))
	checkSaid(t, "its events", names, []string{"error"})
	for _, item := range items {
		if item["message_type"] != "error_message" || item["error_type"] != "deleted" || item["run_id"] != run ||
			!strings.Contains(fmt.Sprint(item["message"]), "/v1/agents/"+r.agent+"/messages") {
			t.Errorf("got %v", item)
		}
	}
	t.Cleanup(runLoop(idle))
	if got := <-began; got.Code != 200 || !strings.Contains(got.Text, run) {
		t.Errorf("the request that began it: got %d %s", got.Code, got.Text)
	}
	r.own().Loop = newLoop(t, r.server, r.model.URL)
	r.send(hello)
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "user_message Hello", "assistant_message Done."})
}
