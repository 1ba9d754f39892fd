package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/db/queue/queuetest"
)

// recordedSession returns a session of some turns as a JSON string.
func recordedSession(turns int, said string) string {
	var b strings.Builder
	for i := range turns {
		fmt.Fprintf(&b, `{"role":"user","content":"What does src/part_%03d.go do? %s"}`+"\n", i, said)
		fmt.Fprintf(&b, `{"role":"assistant","content":"It holds limit_%03d. %s It uses limit_%03d."}`+"\n", i,
			strings.Repeat("That is all there is to say. ", 60), max(i-9, 0))
	}
	text, _ := json.Marshal(b.String()) // a string can always be encoded
	return string(text)
}

// awaitReplay waits until a replay has ended.
func (c *client) awaitReplay(id string) (r replay.Replay) {
	c.t.Helper()
	c.awaitJobs("the replay ends", func() bool {
		c.unmarshal(c.must("GET", "/v1/lab/replays/"+id, ""), &r)
		return r.Status != replay.Running
	})
	return r
}

func (c *client) report(id string) (report lab.Report) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/lab/replays/"+id+"/report", "")), &report); err != nil {
		c.t.Fatal(err)
	}
	return report
}

// A replay runs as a job. It measures the same in slices of one message as in one slice, and stores no secrets.
func TestReplaysRunAsJobsInSlices(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	secret := "sk-ant-api03-" + strings.Repeat("Ab3dE5gH", 11) + "AA"
	body := `{"transcripts":[{"name":"a.jsonl","text":` + recordedSession(30, secret) + `}],
		"policies":["letta","pi","letta"],"windows":[8000,8000],"ratios":[0.5,0.50],"windws":[1],
		"prices":{"input_per_million":10,"cache_read_share":0.1,"cache_write_share":1}}`
	var reports []lab.Report
	for _, slice := range []time.Duration{time.Minute, time.Nanosecond} {
		c.own().Replays.Slice = slice
		started := c.call("POST", "/v1/lab/replays", body)
		if started.Code != http.StatusAccepted || !strings.Contains(started.Text, `"warnings":["`) ||
			!strings.Contains(started.Text, "windws") {
			t.Fatal(started)
		}
		id := fields(t, started.Text)["id"].(string)
		r := c.awaitReplay(id)
		if r.Status != replay.Done || r.Steps != 180 || r.StepsDone != 180 || r.PartsDone != 3 || r.EndedAt == nil {
			t.Fatalf("got %+v", r)
		}
		reports = append(reports, c.report(id))
		page := c.must("GET", "/v1/lab/replays/"+id+"/report.html", "")
		if strings.Count(page, "<polyline") != 3 || strings.Contains(page, secret) || strings.Contains(page, "http") {
			t.Errorf("the page: %.500s", page)
		}
	}
	if diff := cmp.Diff(reports[0], reports[1], cmpopts.IgnoreFields(lab.Result{}, "Wall")); diff != "" {
		t.Errorf("slices measure otherwise (-one +many):\n%s", diff)
	}
	if results := reports[0].Results; len(results) != 3 || results[0].Compactions == 0 || results[0].PairErrors != 0 ||
		results[2].Ratio != 0.5 {
		t.Errorf("got %+v", results)
	}
	if policies := reports[0].Policies; len(policies) != 2 || policies[0].Name != "letta" ||
		string(policies[1].Asked) != `"pi"` {
		t.Errorf("the policies: %+v", policies)
	}
	var stored int
	if err := c.pool.QueryRow(t.Context(), `
		SELECT count(*) FROM replay_sessions WHERE org = $2 AND strpos(transcript::text, $1) > 0`, secret, c.org).Scan(
		&stored); err != nil || stored > 0 {
		t.Errorf("%d sessions hold the secret, %v", stored, err)
	}
}

// An agent's conversation can be replayed. A deleted replay is gone, with its sessions.
func TestAConversationIsReplayedAndTheReplayDeleted(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, chatter(1, 20, "the words of it"))
	started := c.call("POST", "/v1/lab/replays", `{"agent_id":"`+agent+`","policies":["letta"]}`)
	if started.Code != http.StatusAccepted {
		t.Fatal(started)
	}
	id := fields(t, started.Text)["id"].(string)
	if r := c.awaitReplay(id); r.Status != replay.Done || r.Steps != 40 {
		t.Errorf("got %+v", r)
	}
	if list := c.must("GET", "/v1/lab/replays", ""); !strings.Contains(list, id) {
		t.Errorf("the list is %s", list)
	}
	c.must("DELETE", "/v1/lab/replays/"+id, "")
	if got := c.call("GET", "/v1/lab/replays/"+id, ""); got.Code != http.StatusNotFound {
		t.Errorf("after the deletion: %v", got)
	}
	var sessions int
	if err := c.pool.QueryRow(t.Context(), `SELECT count(*) FROM replay_sessions WHERE org = $1`, c.org).Scan(
		&sessions); err != nil || sessions != 0 {
		t.Errorf("%d sessions are left, %v", sessions, err)
	}
}

// If something cannot be replayed, the error names the field, or the line of a transcript. Nothing is stored.
func TestWhatCannotBeReplayedIsRefused(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.own().Agents.Jobs = queuetest.Jobs(t, c.pool, c.org, river.Config{}) // nobody works on the jobs
	good := `"transcripts":[{"name":"a","text":` + recordedSession(1, "") + `}]`
	for body, want := range map[string]string{
		`{}`: "nothing to replay",
		`{"transcripts":[{"name":"a","text":"{\"role\":\"user\",\"content\":\"x\"}\n{bad"}]}`: "line 2",
		`{` + good + `,"windows":[8000,999]}`:                                                 "windows[1]",
		`{` + good + `,"ratios":[1.5]}`:                                                       "ratios[0]",
		`{` + good + `,"policies":["nobody"]}`:                                                "policies[0]",
		`{` + good + `,"model":"some/model"}`:                                                 "no model",
		`{"conversation_id":"default"}`:                                                       "agent_id",
		`{"agent_id":"agent-` + uuid.NewString() + `"}`:                                       "not found",
	} {
		got := c.call("POST", "/v1/lab/replays", body)
		if got.Code < 400 || got.Code >= 500 || !strings.Contains(strings.ToLower(got.Text), want) {
			t.Errorf("%s: got %d %s, want %q", body, got.Code, got.Text, want)
		}
	}
	if list := c.must("GET", "/v1/lab/replays", ""); strings.TrimSpace(list) != "[]" {
		t.Errorf("the list is %s", list)
	}
	for n := range replay.MaxRunning + 1 {
		got := c.call("POST", "/v1/lab/replays", `{`+good+`}`)
		if want := n < replay.MaxRunning; want != (got.Code == http.StatusAccepted) ||
			!want && got.Code != http.StatusConflict {
			t.Errorf("number %d: %v", n+1, got)
		}
		if n == 0 {
			id := fields(t, got.Text)["id"].(string)
			if got := c.call("GET", "/v1/lab/replays/"+id+"/report", ""); got.Code != http.StatusConflict {
				t.Errorf("the report of one that runs: %v", got)
			}
		}
	}
}
