package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// A turn fails after a request with results and approvals but no otids. When the client's library sends the request
// again, the turn goes on, on each server.
func TestAnswersToCallsThatAreSentAgainGoOn(t *testing.T) {
	t.Parallel()
	limited := modeltest.Answer{Status: 429, Header: http.Header{"Retry-After": {"61"}}}
	for name, fault := range map[string]modeltest.Answer{"a fault": {Status: 500}, "a limit": limited,
		"a refusal": badRequest} {
		for form, body := range map[string]string{
			"results":   `{"messages":[{"type":"tool_return","tool_returns":[` + resultW + `]}]}`,
			"answers":   `{"messages":[` + approvalOf(approveI, resultW) + `]}`,
			"approvals": `{"messages":[` + approvalOf(approveI) + `]}`,
			"denials":   `{"messages":[` + approvalOf(denyI, resultW) + `]}`,
			"a text":    `{"messages":[` + approvalOf(approveI, resultW) + `,{"role":"user","content":"And more"}]}`,
		} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, askingAgent)
				other := r.second()
				calls := []modeltest.Call{noteCall(), {ID: "w", Name: "weather", Arguments: `{}`}}
				switch form {
				case "results":
					calls = calls[1:]
				case "approvals":
					calls = calls[:1]
				}
				r.model.Says(modeltest.Answer{Calls: calls})
				r.send(`{"input":"Hello",` + clientWeather + `}`)
				r.model.Reply = func(modeltest.Asked) modeltest.Answer { return fault }
				for n := range 2 {
					target := []runner{r, other}[n]
					if got := target.call("POST", r.path(), body); got.Code < 400 || strings.Contains(got.Text, "No tool call") {
						t.Errorf("try %d: got %d %s", n, got.Code, got.Text)
					}
				}
				r.model.Reply = nil
				checkSaid(t, "the third try", itemTexts(other.send(body).Messages), []string{"assistant_message Done."})
				if asked := r.asked(); strings.Count(asked, "Rain") > 1 || strings.Count(asked, "And more") > 1 {
					t.Errorf("the model was asked %s", asked)
				}
				asked := len(r.model.Requests())
				checkSaid(t, "after its answer", itemTexts(r.send(body).Messages), []string{"assistant_message Done."})
				if n := len(r.model.Requests()); n != asked {
					t.Errorf("after its answer the model was asked %d times more", n-asked)
				}
				if log := fmt.Sprint(r.log()); strings.Count(log, "tool_return_message") != len(calls) {
					t.Errorf("the log is %s", log)
				}
				r.checkPrompts(r.agent)
			})
		}
	}
}
