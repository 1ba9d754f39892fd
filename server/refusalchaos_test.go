package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/loop"
	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

// second returns the runner of a second server on the same database, with the same agent and model.
func (r runner) second() runner {
	c := serverClientOn(r.t, r.pool, r.org)
	l := *r.server.Loop
	l.Server = "second-" + r.agent
	c.own().Loop = loop.New(l)
	r.t.Cleanup(runLoop(c.server.Loop))
	return runner{c, r.model, r.agent}
}

// Two servers on one database know of each other's refusals: the turn after one goes on, in a row they are tried
// together, and a text that failed on one goes on when the other has it again.
func TestARefusalIsKnownToAllServers(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	other := r.second()
	r.says("First")
	r.model.Says(badRequest)
	r.says("Bad")
	other.says("Next")
	if asked := r.asked(); strings.Contains(asked, "Bad") || !strings.Contains(asked, "First") {
		t.Errorf("the other server asks %s", asked)
	}
	r.model.Says(modeltest.Answer{Text: "Poison"})
	r.says("Question")
	r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
		if strings.Contains(string(a.Body), "Poison") {
			return badRequest
		}
		return modeltest.Answer{Text: "Fine."}
	}
	if got := r.says("One"); got.Code != 400 {
		t.Errorf("got %d", got.Code)
	}
	checkSaid(t, "the other server", itemTexts(other.says("Two").Messages), []string{"assistant_message Fine."})
	r.model.Says(badRequest)
	r.says("Xylophone")
	checkSaid(t, "sent again", itemTexts(other.says("Xylophone").Messages), []string{"assistant_message Fine."})
	if asked := r.asked(); strings.Count(asked, "Xylophone") != 1 {
		t.Errorf("the text is in the prompt more than once: %s", asked)
	}
}

// A refusal after the client approved a call, or sent its result, cuts the view before the call.
func TestARefusalAfterAnApprovalCutsTheView(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	r.asks()
	r.model.Says(badRequest)
	if got := r.send(approvals("o", approveI, resultW)); got.Code != 400 {
		t.Errorf("got %d %+v", got.Code, got)
	}
	if got := r.says("Next"); got.StopReason.StopReason != "end_turn" {
		t.Errorf("got %+v", got)
	}
	asked := r.asked()
	if strings.Contains(asked, "Rain") || !strings.Contains(asked, "Hello") ||
		!strings.Contains(asked, "what they changed stays: memory_insert, weather") {
		t.Errorf("the model was asked %s", asked)
	}
}

// A provider that refuses, fails and lies in turn stops no agent, streamed, in the background or not: after each storm
// a message is answered, the first or, if the refused one of before was the last answer's fault, the second.
func TestNoAgentGetsStuck(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(handle, " ", seed), func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`","include_base_tools":true,
					"memory_blocks":[{"label":"human","value":"Ada."}]}`)
				servers := []runner{r, r.second()}
				dice := rand.New(rand.NewPCG(seed, 1))
				faults := []modeltest.Answer{badRequest, badRequest, {Status: 413, Text: `{"error":{"message":"Too big"}}`},
					{Status: 500}, {Status: 503}, {Status: 401}, {Raw: "data: {]\n\n"}, {Text: "He", Cut: true}, {Closes: true},
					{Text: "Poison"}, {Text: "Good."}, {Text: "Good."},
					callOf("c", "memory_insert", `{"label":"human","new_string":"Tea."}`), callOf("d", "nothing", `{`)}
				storm := true
				r.model.Reply = func(a modeltest.Asked) modeltest.Answer {
					switch {
					case strings.Contains(string(a.Body), "Poison"):
						return badRequest
					case !storm:
						return modeltest.Answer{Text: "Fine."}
					}
					return faults[dice.IntN(len(faults))]
				}
				for n := range 24 {
					on := servers[n%2]
					body := fmt.Sprintf(`{"input":"Message %d","max_steps":4`, n-n%3/2) // some are sent twice
					storm = n%6 != 5
					if storm {
						on.call("POST", r.path(), body+[]string{`}`, `,"streaming":true,"stream_tokens":true}`,
							`,"streaming":true,"background":true}`}[n%3])
						continue
					}
					first, second := on.says(fmt.Sprint("Check ", n)), answer{}
					if first.Code != 200 {
						second = on.says(fmt.Sprint("Check again ", n))
					}
					if first.StopReason.StopReason != "end_turn" && second.StopReason.StopReason != "end_turn" {
						t.Fatalf("after message %d the agent is stuck: %+v, %+v; it was asked %s", n, first, second, r.asked())
					}
				}
			})
		}
	}
}
