package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/servertest"
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

// Two servers on one database know of each other's refusals. The turn after a refusal goes on. After several refusals,
// the refused texts are tried together. A text that failed on one server is answered when the other gets it again.
func TestARefusalIsKnownToAllServers(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	other := r.second()
	r.says("First")
	r.model.Says(badRequest, badRequest)
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
	checkSaid(t, "a server", itemTexts(r.says("One").Messages), []string{"assistant_message Fine."})
	checkSaid(t, "the other server", itemTexts(other.says("Two").Messages), []string{"assistant_message Fine."})
	r.model.Says(badRequest, badRequest)
	r.says("Xylophone")
	checkSaid(t, "sent again", itemTexts(other.says("Xylophone").Messages), []string{"assistant_message Fine."})
	if asked := r.asked(); strings.Count(asked, "Xylophone") != 1 {
		t.Errorf("the text is in the prompt more than once: %s", asked)
	}
}

// If a provider refuses after the client approved a call or sent its result, the view is cut before the call.
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

// lies returns bad answers of a provider that claim to be good.
func lies(handle string) (all []modeltest.Answer) {
	all = []modeltest.Answer{{Finish: "length"}, {Text: "Half", Finish: "length"}, {Raw: "<html>Welcome</html>"},
		{Raw: "{]"}, {Raw: "data: {]\n\n"}, {Raw: "data: null\n\n"}, {Raw: `{}`}, {Ends: true}, {Text: "No end", Ends: true},
		callOf("", "memory_insert", `{"label":"human","new_string":"Tea."}`), callOf("same", "", `{}`),
		callOf("same", "memory_insert", `{"label":`), callOf("same", "memory_insert", `[]`), callOf("d", "nothing", `{`),
		{Calls: []modeltest.Call{{ID: "same", Name: "memory_insert", Arguments: `null`},
			{ID: "same", Name: "memory_insert"}}},
		{Text: "Calls without one.", Finish: "tool_calls"}, {Text: "Withheld.", Finish: "content_filter"}, {Text: "\x00\xff"}}
	if strings.HasPrefix(handle, "anthropic/") {
		return append(all,
			modeltest.Answer{Raw: "event: error\ndata: " + `{"type":"error","error":{"type":"invalid_request_error",` +
				`"message":"Could not process image"}}` + "\n\n"},
			modeltest.Answer{Raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`})
	}
	return append(all, modeltest.Answer{Raw: badRequest.Text},
		modeltest.Answer{Raw: "data: " + `{"error":{"message":"The image cannot be read","code":400}}` + "\n\n"},
		modeltest.Answer{Raw: `{"choices":[]}`}, modeltest.Answer{Raw: `{"choices":[{"index":0,"message":null}]}`})
}

// A provider refuses, fails and lies in turn, and no agent gets stuck, whether streamed, in the background or neither.
// After each storm, the agent answers the first message, or the second one if the last bad answer belonged to a refused
// message from before.
func TestNoAgentGetsStuck(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for seed := range uint64(scale.Of(2, 8)) {
			t.Run(fmt.Sprint(handle, " ", seed), func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`","tool_set":"standard",
					"memory_blocks":[{"label":"human","value":"Ada."}]}`)
				servers := []runner{r, r.second()}
				dice := rand.New(rand.NewPCG(seed, 1))
				faults := []modeltest.Answer{badRequest, badRequest, {Status: 413, Text: `{"error":{"message":"Too big"}}`},
					tooLong, {Status: 400}, {Status: 500}, {Status: 503}, {Status: 401}, {Text: "He", Cut: true}, {Closes: true},
					{Text: "Poison"}, {Text: "Good."}, {Text: "Good."},
					callOf("c", "memory_insert", `{"label":"human","new_string":"Tea."}`)}
				if seed%2 == 1 {
					faults = append(faults, lies(handle)...)
				}
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
				for n := range stormMessages {
					target := servers[n%2]
					body := fmt.Sprintf(`{"input":"Message %d","max_steps":4`, n-n%3/2) // some are sent twice
					storm = n%6 != 5
					if storm {
						target.inStorm(n%4, body)
						continue
					}
					first, second := target.says(fmt.Sprint("Check ", n)), answer{}
					if first.Code != 200 {
						second = target.says(fmt.Sprint("Check again ", n))
					}
					if first.StopReason.StopReason != "end_turn" && second.StopReason.StopReason != "end_turn" {
						t.Fatalf("after message %d the agent is stuck: %+v, %+v; it was asked %s", n, first, second, r.asked())
					}
					r.checkPrompts(r.agent)
				}
			})
		}
	}
}

// stormMessages is how many messages are sent to an agent with such a provider.
const stormMessages = 24

// inStorm sends a message in one of four ways, and waits until its run has ended.
func (r runner) inStorm(way int, body string) {
	r.t.Helper()
	if way == 3 {
		run := r.made(r.path()+"/async", body+"}")
		embedtest.Eventually(r.t, "the run has ended", func() bool {
			return fields(r.t, r.must("GET", "/v1/runs/"+run, ""))["status"] != "running"
		})
		return
	}
	r.call("POST", r.path(), body+[]string{`}`, `,"streaming":true,"stream_tokens":true}`,
		`,"streaming":true,"background":true}`}[way])
}

// If a program has its own loop, and its provider refuses and lies, no agent gets stuck in any of the three dialects.
// The provider accepts the next prompt, and the next turn is accepted.
func TestNoLoopOfOnesOwnGetsStuck(t *testing.T) {
	t.Parallel()
	for format, dialect := range dialects {
		for seed := range uint64(scale.Of(1, 4)) {
			t.Run(fmt.Sprint(format, " ", seed), func(t *testing.T) {
				t.Parallel()
				c := newClient(t)
				agent := c.made("/v1/agents", `{"name":"a","tool_set":"standard",
					"memory_blocks":[{"label":"notes","value":"x"}]}`)
				dice := rand.New(rand.NewPCG(seed, 2))
				answers := []string{`"response":` + fmt.Sprintf(dialect.end, 10), `"response":` + fmt.Sprintf(dialect.answer, 10),
					`"response":` + strings.ReplaceAll(fmt.Sprintf(dialect.answer, 10), `\"tea\"`, `\"te`),
					`"response":{}`, `"response":{"choices":[]}`, `"messages":[` + dialect.result + `]`, reported, reported, reported,
					`"refused":{"status":400}`, `"refused":{"status":400,"message":"prompt is too long: 9000 tokens > 4000 maximum"}`,
					`"refused":{"status":500,"message":"Overloaded"}`, `"refused":{"status":401}`}
				step := func(body string) servertest.Reply {
					return c.call("POST", "/v1/agents/"+agent+"/step", `{`+body+`,"pending":"answer","format":"`+format+`"}`)
				}
				for n := range stormMessages {
					text := fmt.Sprintf(`"messages":[{"role":"user","content":"Message %d"}]`, n)
					if n%4 == 3 {
						c.call("POST", "/v1/agents/"+agent+"/messages/capture", `{`+text+`,`+reported+`}`)
					}
					step(text)
					for range dice.IntN(5) {
						if got := step(answers[dice.IntN(len(answers))]); got.Code >= 500 {
							t.Fatalf("message %d: got %d %s", n, got.Code, got.Text)
						}
					}
					if n%6 != 5 {
						continue
					}
					if got := step(fmt.Sprintf(`"messages":[{"role":"user","content":"Check %d"}]`, n)); got.Code != 200 ||
						!strings.Contains(got.Text, fmt.Sprint("Check ", n)) || !strings.Contains(got.Text, `"next":"model"`) {
						t.Fatalf("after message %d the agent is stuck: got %d %s", n, got.Code, got.Text)
					}
					c.checkPrompts(agent)
					if got := step(answers[0]); got.Code != 200 || !strings.Contains(got.Text, `"next":"user"`) {
						t.Fatalf("after message %d: got %d %s", n, got.Code, got.Text)
					}
				}
			})
		}
	}
}
