package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// refusal is a model's answer that refuses a request.
var refusal = modeltest.Answer{Status: 400, Text: `{"error":{"message":"Not now"}}`}

// If a request's run failed, sending the request again with its otid continues it, however often it fails. After it
// succeeds, the request gets the answer of the continued run.
func TestARequestThatFailedGoesOn(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	const said = `{"messages":[{"role":"user","content":"Hello","otid":"o"}]}`
	for range 2 {
		r.model.Says(refusal)
		if got := r.send(said); got.StopReason.StopReason != "llm_api_error" || len(got.Messages) != 0 {
			t.Fatalf("got %+v", got)
		}
	}
	r.model.Says(modeltest.Answer{Text: "Hi."})
	got := r.send(said)
	checkSaid(t, "sent again", itemTexts(got.Messages), []string{"assistant_message Hi."})
	asked := len(r.model.Requests())
	diff := cmp.Diff(got, r.send(said))
	if n := len(r.model.Requests()); diff != "" || n != asked {
		t.Errorf("then the model was asked %d times more; the answer (-before +after):\n%s", n-asked, diff)
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "assistant_message Hi."})
}

// If there are later messages, a failed request does not go on.
func TestAFailedRequestDoesNotGoOnBehindOthers(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	const said = `{"messages":[{"role":"user","content":"Hello","otid":"o"}]}`
	r.model.Says(refusal)
	failed := r.send(said)
	r.model.Says(modeltest.Answer{Text: "Hi."})
	r.send(`{"input":"Something else"}`)
	asked := len(r.model.Requests())
	got := r.call("POST", r.path(), said)
	if got.Code != 409 || !strings.Contains(got.Text, failed.RunID) || !strings.Contains(got.Text, "newer messages") {
		t.Errorf("got %d %s, want a 409 with the run %s", got.Code, got.Text, failed.RunID)
	}
	if n := len(r.model.Requests()); n != asked {
		t.Errorf("the model was asked %d times more", n-asked)
	}
}

// If a run with approvals failed, the approvals count once, and their request goes on.
func TestApprovalsThatFailedGoOn(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	r.asks()
	body := approvals("o", approveI, resultW)
	r.model.Says(refusal)
	if got := r.send(body); got.StopReason.StopReason != "llm_api_error" {
		t.Fatalf("got %+v", got)
	}
	r.model.Says(modeltest.Answer{Text: "Noted."})
	got := r.send(body)
	checkSaid(t, "sent again", itemTexts(got.Messages), []string{"assistant_message Noted."})
	if again := r.send(body); again.RunID != got.RunID {
		t.Errorf("a third time it has the run %s, not %s", again.RunID, got.RunID)
	}
	if block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""); strings.Count(block, "Tea.") != 1 {
		t.Errorf("the block is %s", block)
	}
}

// A null field means the same as an absent one.
func TestNullsOfApprovalsAreAbsent(t *testing.T) {
	t.Parallel()
	const nulls = `,"tool_return":null,"status":null,"stdout":null,"stderr":null`
	withNulls := func(answer string) string { return strings.TrimSuffix(answer, "}") + nulls + "}" }
	for name, c := range map[string]struct{ answer, status string }{
		"approved":                {withNulls(approveI), "success"},
		"approved, without type":  {`{"type":null,"approve":true,"tool_call_id":"i"` + nulls + `}`, "success"},
		"denied":                  {withNulls(denyI), "error"},
		"a result without a type": {`{"approve":null,"tool_call_id":"i","tool_return":"Done"}`, "success"},
	} {
		r := newRunner(t, askingAgent)
		r.asks()
		for field, wrong := range map[string]string{
			"tool_return": `{"type":"approval","approve":true,"tool_call_id":"i","tool_return":"z"}`,
			"type":        `{"type":"yes","approve":true,"tool_call_id":"i"}`,
			"approve":     `{"type":"approval","tool_call_id":"i","approve":null}`,
		} {
			got := r.call("POST", r.path(), approvals("x", wrong, resultW))
			if place := "body.messages[0].approvals[0]." + field; got.Code != 422 || !strings.Contains(got.Text, place) {
				t.Errorf("%s: got %d %s, want 422 at %s", wrong, got.Code, got.Text, place)
			}
		}
		r.model.Says(modeltest.Answer{Text: "Noted."})
		r.send(approvals("o", c.answer, resultW))
		if log := r.log(); !slices.Contains(log, "tool_return_message i "+c.status) {
			t.Errorf("%s: the log is %q, without the status %q", name, log, c.status)
		}
		block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", "")
		if done := strings.Contains(block, "Tea."); done != strings.HasPrefix(name, "approved") {
			t.Errorf("%s: the block is %s", name, block)
		}
		if name == "denied" && !strings.Contains(string(r.model.Requests()[1].Body), "No") {
			t.Errorf("the model does not read why: %s", r.model.Requests()[1].Body)
		}
	}
}

// A message is what its type or role says, even if it has null fields of other kinds.
func TestNullsOfOtherMessagesAreAbsent(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Text: "Hi."})
	got := r.send(`{"messages":[{"type":null,"role":"user","content":"Hello","approvals":null,"approve":null,
		"approval_request_id":null,"reason":null,"tool_returns":null}]}`)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"assistant_message Hi."})
	wrong := `{"messages":[{"type":"approval","approve":false,"approvals":[` + approveI + `]}]}`
	if got := r.call("POST", r.path(), wrong); got.Code != 422 || !strings.Contains(got.Text, "approve") {
		t.Errorf("a contradiction: got %d %s", got.Code, got.Text)
	}
}
