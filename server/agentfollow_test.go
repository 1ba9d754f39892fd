package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
)

// A user's message that comes with approvals follows the results of the approved calls. Each approved tool runs once.
func TestAMessageFollowsTheCallsThatAreApprovedWithIt(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"And also","otid":"u"}`
	approval, approvalAndResult := approvalOf(approveI), approvalOf(approveI, resultW)
	result := `{"type":"tool_return","tool_returns":[` + resultW + `]}`
	for name, c := range map[string]struct {
		path, messages string
		weather, deny  bool
	}{
		"approval first":           {"", approval + `,` + user, false, false},
		"message first":            {"", user + `,` + approval, false, false},
		"a stream":                 {"/stream", approval + `,` + user, false, false},
		"a conversation":           {"conversations", approval + `,` + user, false, false},
		"with a result":            {"", approvalAndResult + `,` + user, true, false},
		"between result and it":    {"", result + `,` + user + `,` + approval, true, false},
		"before result and it":     {"", user + `,` + result + `,` + approval, true, false},
		"a result and a message":   {"", user + `,` + approvalAndResult, true, false},
		"a denial, and a message":  {"", user + `,` + approvalOf(denyI), false, true},
		"a denial with a result":   {"/stream", user + `,` + approvalOf(denyI, resultW), true, true},
		"a background run":         {"background", approval + `,` + user, false, false},
		"a background run's order": {"background", user + `,` + approvalAndResult, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asking := askingAgent
			if !c.weather { // the rule would refuse the other call
				asking = strings.Replace(asking, `"tool_rules":[`,
					`"tool_rules":[{"type":"exit_loop","tool_name":"memory_insert"},`, 1)
			}
			r := newRunner(t, asking)
			want := []string{"user_message Hello", "approval_request_message memory_insert"}
			if c.weather {
				want[1] += " weather"
				r.asks()
			} else {
				r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
				r.send(hello)
			}
			r.model.Says(modeltest.Answer{Text: "Well."})
			path, options := r.path()+c.path, ``
			switch c.path {
			case "conversations":
				path, options = "/v1/conversations/default/messages", `,"streaming":false,"agent_id":"`+r.agent+`"`
			case "background":
				path, options = r.path(), `,"streaming":true,"background":true`
			}
			body := `{"messages":[` + c.messages + `]` + options + `}`
			reply := r.call("POST", path, body)
			teas := map[bool]int{true: 0, false: 1}[c.deny]
			if reply.Code != 200 || strings.Count(r.human(), "Tea.") != teas {
				t.Fatalf("got %d %s, and the block %s", reply.Code, reply.Text, r.human())
			}
			log := r.log()
			last := len(log) - 2
			checkSaid(t, "the log's end", log[last:], []string{"user_message And also", "assistant_message Well."})
			checkSaid(t, "the log's beginning", log[:2], want)
			if all := strings.Join(log[2:last], ", "); strings.Count(all, "tool_return_message") != (last-2)/2 ||
				strings.Count(all, "approval_response_message") != (last-2)/2 || last < 4 {
				t.Errorf("between them: %s", all)
			}
			asked := string(r.model.Requests()[len(r.model.Requests())-1].Body)
			if strings.Contains(asked, "was not recorded") || strings.Count(asked, "And also") != 1 {
				t.Errorf("the model was asked %s", asked)
			}
			again := r.call("POST", path, body)
			checkSaid(t, "the log after a repetition", r.log(), log)
			if again.Code != 200 {
				t.Errorf("a repetition: got %d %s", again.Code, again.Text)
			}
			other := strings.Replace(strings.Replace(body, "Rain", "Snow", 1), "And also", "And then", 1)
			if got := r.call("POST", path, other); got.Code != 409 {
				t.Errorf("another message of the otid: got %d %s", got.Code, got.Text)
			}
			checkSaid(t, "the log after a conflict", r.log(), log)
		})
	}
}

// A message that comes with approvals keeps its place if its run is interrupted or cancelled before the message.
func TestAMessageThatFollowsApprovalsIsNotLost(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"
	for _, cancels := range []bool{false, true} {
		r := newOwnRunner(t, askingAgent)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
		r.send(hello)
		idle := loop.New(*r.server.Loop)
		idle.CancelPatience = time.Millisecond
		r.own().Loop = idle
		sent := make(chan servertest.Reply, 1)
		body := `{"messages":[` + approvalOf(approveI) + `,{"role":"user","otid":"key","content":"My key is ` + secret +
			`"}]}`
		go func() { sent <- r.call("POST", r.path()+"/async", body) }()
		run := r.begins()
		c, err := r.server.Recall.Conversation(t.Context(), r.org, r.agent, recall.DefaultConversation)
		if err != nil {
			t.Fatal(err)
		}
		found, err := idle.Find(t.Context(), r.org, c, "", "key")
		if err != nil || found.ID != run {
			t.Errorf("by the message's otid: got %s, %v, want %s", found.ID, err, run)
		}
		if _, err := idle.Find(t.Context(), r.org, c, "", "nobody's"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("by an otid of nothing: got %v", err)
		}
		want, result := []string{"assistant_message Done."}, "success"
		if cancels {
			r.must("POST", r.path()+"/cancel", `{}`)
			want, result = nil, "error"
		}
		runLoop(idle)()
		<-sent
		if kept, err := db.All[string](t.Context(), r.server.DB, `
			SELECT request::text FROM runs WHERE org = $1`, r.org); err != nil ||
			strings.Contains(fmt.Sprint(kept), secret) {
			t.Errorf("the run is stored with a secret: %v, %v", kept, err)
		}
		r.resumes()
		r.ended(run)
		log := r.log()
		if len(log) > 4 {
			log[4], _, _ = strings.Cut(log[4], " is ")
		}
		checkSaid(t, fmt.Sprint("cancelled: ", cancels), log, append([]string{"user_message Hello",
			"approval_request_message memory_insert", "approval_response_message i=true", "tool_return_message i " + result,
			"user_message My key"}, want...))
	}
}

// begins waits until a run is working, and returns the run's id.
func (r runner) begins() string {
	r.t.Helper()
	var all []map[string]any
	embedtest.Eventually(r.t, "a run begins", func() bool {
		all = r.list("/v1/runs?active=true")
		return len(all) > 0
	})
	return fmt.Sprint(all[0]["id"])
}

// human returns the value of the agent's block with the label human.
func (r runner) human() string {
	r.t.Helper()
	return fmt.Sprint(fields(r.t, r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""))["value"])
}
