package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

// flushAgent is an agent with a small window and silent turns.
const flushAgent = `{"name":"a","context_window_limit":8000,"model":"openai/m","flush":%s,
	"include_base_tools":false,"tools":["update_working_memory","memory_insert","conversation_search"],
	"memory_blocks":[{"label":"human","value":"Ada."}]}`

// fill appends turns to an agent's conversation until its next prompt has a number of tokens.
func (c *client) fill(agent string, tokens int) {
	c.t.Helper()
	for n := 0; n == 0 || c.handedOut(agent).Total < tokens; n++ {
		c.must("POST", "/v1/agents/"+agent+"/messages/capture", fmt.Sprintf(`{"messages":[
			{"role":"user","content":"Question %d: %s"},{"role":"assistant","content":"Answer %[1]d."}]}`, n,
			strings.Repeat("which of the ports is open here ", 12)))
		if n > 200 {
			c.t.Fatal("the conversation does not fill")
		}
	}
}

// overflow appends messages until the next prompt is compacted.
func (c *client) overflow(agent string) {
	c.t.Helper()
	for n := len(c.compactions(agent)); len(c.compactions(agent)) == n; c.handedOut(agent) {
		c.must("POST", "/v1/agents/"+agent+"/messages/capture", fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`,
			strings.Repeat("which of the ports is open here ", 20)))
	}
}

// flush is a silent turn in a list.
type flush struct {
	Kind, Reason, Status string
	Why                  *string
	Steps, Calls         int
}

func (c *client) flushes(agent string) (list []flush) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/conversations/"+agent+"/flushes", "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

const noted = `{"changes":[{"field":"decisions","text":"Port 8283 is open"}]}`

func (r runner) toolsAsked(n int) (names []string) {
	r.t.Helper()
	var tools []struct{ Function struct{ Name string } }
	if err := json.Unmarshal(r.model.Requests()[n].Fields["tools"], &tools); err != nil {
		r.t.Fatal(err)
	}
	for _, t := range tools {
		names = append(names, t.Function.Name)
	}
	return names
}

func TestAnAgentWritesToMemoryBeforeACompaction(t *testing.T) {
	t.Parallel()
	r := newRunner(t, fmt.Sprintf(flushAgent, `{"mode":"flush","timeout_seconds":300}`))
	r.fill(r.agent, 6_500)
	r.model.Says(callOf("f1", "update_working_memory", noted), modeltest.Answer{Text: "All is noted."},
		modeltest.Answer{Text: "Hi."})
	got := r.send(hello)
	checkSaid(t, "what the client sees", itemTexts(got.Messages), []string{"assistant_message Hi."})
	asked := r.model.Requests()
	if len(asked) != 3 || got.Usage.Steps != 1 {
		t.Fatalf("%d requests, %d steps, want 3 and 1", len(asked), got.Usage.Steps)
	}
	if tools := r.toolsAsked(0); !slices.Equal(tools, []string{"memory_insert", "update_working_memory"}) {
		t.Errorf("the tools of the silent turn are %v", tools)
	}
	first, last := string(asked[0].Body), string(asked[2].Body)
	if !strings.Contains(first, "This is a silent turn") || !strings.Contains(first, "Hello") ||
		!strings.Contains(string(asked[1].Body), "has been updated") {
		t.Errorf("the silent turn lacks its instructions or results: %s", first[max(0, len(first)-600):])
	}
	if strings.Contains(last, "silent turn") || strings.Contains(last, "All is noted") ||
		!strings.Contains(last, "Port 8283 is open") {
		t.Errorf("the prompt after it: %s", last)
	}
	if got := r.flushes(r.agent); len(got) != 1 || got[0] != (flush{"flush", "compaction", "done", nil, 2, 1}) {
		t.Errorf("flushes: %+v", got)
	}
	all := r.must("GET", r.path()+"?limit=1000&include_flush=true", "")
	if strings.Contains(r.must("GET", r.path()+"?limit=1000", ""), "All is noted") ||
		strings.Count(all, `"purpose":"flush"`) != 4 || !strings.Contains(all, "All is noted") {
		t.Errorf("the history: %s", all)
	}
	r.send(hello)
	if n := len(r.model.Requests()); n != 4 {
		t.Errorf("%d requests after the next message, want 4: a view has one silent turn", n)
	}
	r.overflow(r.agent)
	r.fill(r.agent, 6_500)
	r.send(hello)
	if got := r.flushes(r.agent); len(got) != 2 {
		t.Errorf("%d flushes after a compaction, want 2", len(got))
	}
}

func TestASilentTurnThatFailsIsLeftOut(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	for name, test := range map[string]struct {
		settings string
		answers  []modeltest.Answer
		want     flush
	}{
		"it calls no tool": {`{"mode":"flush"}`, []modeltest.Answer{{Text: "Nothing to note."}},
			flush{"flush", "compaction", "nothing", nil, 1, 0}},
		"it calls another tool": {`{"mode":"flush"}`, []modeltest.Answer{callOf("a", "conversation_search", `{"query":"x"}`),
			{Text: "So be it."}}, flush{"flush", "compaction", "nothing", nil, 2, 0}},
		"it calls tools without end": {`{"mode":"flush","max_steps":2}`, []modeltest.Answer{
			callOf("a", "memory_insert", `{"label":"human","new_string":"x"}`),
			callOf("a", "memory_insert", `{"label":"human","new_string":"y"}`)},
			flush{"flush", "compaction", "done", nil, 2, 2}},
		"its arguments are broken": {`{"mode":"flush","max_steps":1}`, []modeltest.Answer{
			callOf("a", "memory_insert", `{"label":`)}, flush{"flush", "compaction", "nothing", nil, 1, 0}},
		"its endpoint fails": {`{"mode":"flush"}`, []modeltest.Answer{{Status: 500, Text: "{}"}},
			flush{"flush", "compaction", "failed", nil, 0, 0}},
		"its endpoint refuses": {`{"mode":"flush"}`, []modeltest.Answer{badRequest},
			flush{"flush", "compaction", "failed", nil, 0, 0}},
		"its endpoint refuses a later prompt": {`{"mode":"flush"}`, []modeltest.Answer{
			callOf("a", "memory_insert", `{"label":"human","new_string":"x"}`), badRequest},
			flush{"flush", "compaction", "failed", nil, 1, 1}},
		"it never answers": {`{"mode":"flush","timeout_seconds":1}`, []modeltest.Answer{{Wait: never}},
			flush{"flush", "compaction", "expired", nil, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, fmt.Sprintf(flushAgent, test.settings))
			r.fill(r.agent, 6_500)
			r.model.Says(append(test.answers, modeltest.Answer{Text: "Hi."})...)
			got := r.send(hello)
			checkSaid(t, "what the client sees", itemTexts(got.Messages), []string{"assistant_message Hi."})
			list := r.flushes(r.agent)
			if len(list) != 1 {
				t.Fatalf("%d flushes, want one", len(list))
			}
			if why := list[0].Why; (why != nil) != (test.want.Status == "failed") {
				t.Errorf("why: %v", why)
			}
			if list[0].Why = nil; list[0] != test.want {
				t.Errorf("got %+v, want %+v", list[0], test.want)
			}
		})
	}
}

// TestACheckpointIsForcedOnceAndCompactsAfterwards checks the order that makes compactions lossless: the checkpoint is
// stored first.
func TestACheckpointIsForcedOnceAndCompactsAfterwards(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []modeltest.Answer
		want    flush
	}{
		"it is written": {[]modeltest.Answer{callOf("a", "update_working_memory", noted)},
			flush{"checkpoint", "tokens", "done", nil, 1, 1}},
		"it is written the second time": {[]modeltest.Answer{{Text: "I'd rather not."},
			callOf("a", "update_working_memory", noted)}, flush{"checkpoint", "tokens", "done", nil, 2, 1}},
		"it is not written": {[]modeltest.Answer{{Text: "No."}, callOf("a", "update_working_memory", `{`)},
			flush{"checkpoint", "tokens", "nothing", nil, 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, fmt.Sprintf(flushAgent, `{"mode":"checkpoint","before_compaction":false,"tokens":3000}`))
			r.fill(r.agent, 3_100)
			r.model.Says(append(test.answers, modeltest.Answer{Text: "Hi."})...)
			checkSaid(t, "what the client sees", itemTexts(r.send(hello).Messages), []string{"assistant_message Hi."})
			if got := r.flushes(r.agent); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			asked := r.model.Requests()
			for _, a := range asked[:len(asked)-1] {
				if !strings.Contains(string(a.Fields["tool_choice"]), "update_working_memory") {
					t.Errorf("tool_choice of the checkpoint: %s", a.Fields["tool_choice"])
				}
			}
			if got := r.list("/v1/agents/" + r.agent + "/compactions"); len(got) != 1 {
				t.Errorf("%d compactions after the checkpoint, want 1", len(got))
			}
			last := string(asked[len(asked)-1].Body)
			if written := strings.Contains(last, "[seq ") && strings.Contains(last, "8283"); len(asked) != test.want.Steps+1 ||
				written != (test.want.Calls == 1) || strings.Contains(last, "\"Question 0:") {
				t.Errorf("%d requests; the last: %s", len(asked), last)
			}
		})
	}
}

// silent is a prompt that the server returned to a program's own loop.
type silent struct {
	Purpose string
	Flush   *struct {
		Instructions string
		Tools        []string
		MustCall     string `json:"must_call"`
		StepsLeft    int    `json:"steps_left"`
	}
	Request json.RawMessage
}

func (c *client) accepting(agent string) (p silent) {
	c.t.Helper()
	text := c.must("GET", "/v1/agents/"+agent+"/prompt?accept=flush", "")
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// flushCall is an answer to a silent turn.
const flushCall = `{"otid":"%s","purpose":"flush","accept":"flush","response":{"choices":[{"message":{
	"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"update_working_memory",
	"arguments":"{\"changes\":[{\"field\":\"task\",\"text\":\"Find the port\"}]}"}}]}}]}}`

func TestALoopOfAProgramIsHandedSilentTurns(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, `{"mode":"flush","instructions":"Write it </system> down."}`))
	path := "/v1/agents/" + agent
	c.refuses("GET", path+"/prompt?accept=flush", "", 409, "no message in view")
	c.fill(agent, 6_500)
	if text := c.must("GET", path+"/prompt", ""); strings.Contains(text, "flush") {
		t.Errorf("a caller that does not know of silent turns sees one: %s", text)
	}
	p := c.accepting(agent)
	if p.Purpose != "flush" || p.Flush == nil {
		t.Fatalf("no silent turn: %+v", p)
	}
	if !strings.Contains(p.Flush.Instructions, "Write it <~/system> down.") ||
		!slices.Equal(p.Flush.Tools, []string{"update_working_memory", "memory_insert"}) || p.Flush.StepsLeft != 3 ||
		!strings.Contains(string(p.Request), "silent turn") {
		t.Errorf("got %+v", *p.Flush)
	}
	if again := c.accepting(agent); string(again.Request) != string(p.Request) {
		t.Error("a caller that asks again is handed another turn")
	}
	if text := c.must("GET", path+"/prompt", ""); strings.Contains(text, "silent turn") {
		t.Errorf("the prompt of another caller has the open turn: %s", text)
	}
	first := c.must("POST", path+"/step", fmt.Sprintf(flushCall, "f1"))
	if !strings.Contains(first, `"purpose":"flush"`) || !strings.Contains(first, "Find the port") ||
		!strings.Contains(first, `"status":"success"`) {
		t.Errorf("the answer's step: %s", first)
	}
	if again := c.must("POST", path+"/step", fmt.Sprintf(flushCall, "f1")); !strings.Contains(again, `"repeated":true`) {
		t.Errorf("the step sent again: %s", again)
	}
	end := c.must("POST", path+"/step", `{"otid":"f2","purpose":"flush","accept":"flush","response":{"choices":[
		{"message":{"role":"assistant","content":"Noted."}}]}}`)
	if strings.Contains(end, `"purpose"`) || strings.Contains(end, "Noted.") || !strings.Contains(end, "Find the port") {
		t.Errorf("the step that ends the turn: %s", end)
	}
	if got := c.flushes(agent); len(got) != 1 || got[0] != (flush{"flush", "compaction", "done", nil, 2, 1}) {
		t.Errorf("flushes: %+v", got)
	}
	if late := c.call("POST", path+"/step", fmt.Sprintf(flushCall, "late-turn")); late.Code != 409 ||
		!strings.Contains(late.Text, "Nothing was stored") {
		t.Errorf("an answer that comes too late: got %d %s", late.Code, late.Text)
	}
	if got := c.must("GET", path+"/messages?limit=1000&include_flush=true", ""); strings.Contains(got, "late-turn") {
		t.Errorf("the late answer is stored: %s", got)
	}
}

func TestASilentTurnNeverBlocksACompaction(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, `{"mode":"flush","timeout_seconds":300}`))
	c.fill(agent, 6_500)
	if p := c.accepting(agent); p.Purpose != "flush" {
		t.Fatalf("no turn: %+v", p)
	}
	c.overflow(agent)
	if n := len(c.compactions(agent)); n == 0 {
		t.Error("a caller that does not answer the turn blocks the compaction")
	}
	if late := c.call("POST", "/v1/agents/"+agent+"/step", fmt.Sprintf(flushCall, "x")); late.Code != 409 {
		t.Errorf("an answer after the compaction: got %d", late.Code)
	}
	if p := c.accepting(agent); p.Purpose != "" {
		t.Errorf("the turn goes on after the compaction: %+v", p)
	}
	if got := c.must("GET", "/v1/conversations/"+agent+"/flushes", ""); !strings.Contains(got, `"overtaken"`) ||
		strings.Contains(got, `"ended_at":null`) {
		t.Errorf("the turn that nobody answered: %s", got)
	}
}

func (c *client) compactions(agent string) (list []map[string]any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/compactions", "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

func TestRequestsAtOnceBeginOneSilentTurn(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, `{"mode":"flush","timeout_seconds":300}`))
	c.fill(agent, 6_500)
	other := serverClientOn(t, c.pool, c.org)
	var requests sync.WaitGroup
	for i := range 8 {
		requests.Go(func() {
			asked := other
			if i%2 == 0 {
				asked = c
			}
			got := asked.call("GET", "/v1/agents/"+agent+"/prompt?accept=flush", "")
			if got.Code != 200 || !strings.Contains(got.Text, `"purpose":"flush"`) {
				t.Errorf("got %d %.200s", got.Code, got.Text)
			}
		})
	}
	requests.Wait()
	if text := c.must("GET", "/v1/agents/"+agent+"/messages?limit=1000&include_flush=true", ""); strings.Count(text,
		`"purpose":"flush"`) != 1 {
		t.Errorf("the log has the turn's instructions %d times", strings.Count(text, `"purpose":"flush"`))
	}
}

// A silent turn that nobody answers ends at its deadline, even if nobody asks for a prompt again.
func TestASilentTurnEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, `{"mode":"flush","timeout_seconds":300}`))
	c.fill(agent, 6_500)
	if p := c.accepting(agent); p.Purpose != "flush" {
		t.Fatalf("no turn: %+v", p)
	}
	if _, err := c.pool.Exec(t.Context(), `
		UPDATE flushes SET deadline = now() - interval '1 second' WHERE org = $1`, c.org); err != nil {
		t.Fatal(err)
	}
	if got := c.must("GET", "/v1/conversations/"+agent+"/flushes", ""); !strings.Contains(got, `"expired"`) ||
		strings.Contains(got, `"ended_at":null`) {
		t.Errorf("the turn is %s", got)
	}
}

// If several answers to one silent turn come at the same time, each stored answer is run, and the others are refused.
func TestAnswersToOneSilentTurnAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for mode, maxSteps := range map[string]int{"flush": 3, "checkpoint": 1} {
		agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, fmt.Sprintf(`{"mode":%q,"max_steps":3,"timeout_seconds":300}`,
			mode)))
		c.fill(agent, 6_500)
		if p := c.accepting(agent); p.Purpose != "flush" {
			t.Fatalf("no turn: %+v", p)
		}
		replies := make([]servertest.Reply, 8)
		var requests sync.WaitGroup
		for i := range replies {
			requests.Go(func() {
				call := strings.ReplaceAll(fmt.Sprintf(flushCall, fmt.Sprintf("otid%d", i)), "Find the port", fmt.Sprintf("d%d", i))
				replies[i] = c.call("POST", "/v1/agents/"+agent+"/step", call)
			})
		}
		requests.Wait()
		stored := 0
		for i, got := range replies {
			if got.Code == 409 {
				continue
			}
			if stored++; got.Code != 200 || !strings.Contains(got.Text, `"status":"success"`) {
				t.Errorf("%s: answer %d: %d %.500s", mode, i, got.Code, got.Text)
			}
		}
		if got := c.flushes(agent); stored == 0 || stored > maxSteps || len(got) != 1 || got[0].Steps != stored ||
			got[0].Calls != stored {
			t.Errorf("%s: %d answers are stored, the turn is %+v", mode, stored, got)
		}
	}
}

// A silent turn of a program's own loop ends with an answer that has no call, with a step that does not accept more of
// it, and when the conversation goes on. Later answers are refused.
func TestNothingIsAddedToASilentTurnThatHasEnded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const answer = `"response":{"choices":[{"message":{"role":"assistant","content":"Said."}}]}}`
	calls := strings.Replace(flushCall, `"accept":"flush",`, "", 1)
	for name, test := range map[string]struct {
		path, body string
		want       flush
	}{
		"an answer without a call": {"/step", `{"purpose":"flush",` + answer, flush{"flush", "tokens", "nothing", nil, 1, 0}},
		"a step that accepts no more": {"/step", fmt.Sprintf(calls, "first"),
			flush{"flush", "tokens", "done", nil, 1, 1}},
		"a message of the user": {"/messages/capture", `{"messages":[{"role":"user","content":"Hey"}]}`,
			flush{"flush", "tokens", "overtaken", nil, 0, 0}},
		"an ordinary answer": {"/step", `{` + answer, flush{"flush", "tokens", "overtaken", nil, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.of(t)
			agent := c.made("/v1/agents", fmt.Sprintf(flushAgent, `{"mode":"flush","tokens":2000}`))
			c.fill(agent, 2_100)
			if p := c.accepting(agent); p.Purpose != "flush" {
				t.Fatalf("no turn: %+v", p)
			}
			c.must("POST", "/v1/agents/"+agent+test.path, test.body)
			for _, late := range []string{fmt.Sprintf(calls, "late"), fmt.Sprintf(flushCall, "later"),
				`{"purpose":"flush",` + answer} {
				if got := c.call("POST", "/v1/agents/"+agent+"/step", late); got.Code != 409 {
					t.Errorf("a late answer: got %d %s", got.Code, got.Text)
				}
			}
			if got := c.flushes(agent); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if p := c.accepting(agent); p.Purpose != "" {
				t.Errorf("the turn goes on: %+v", p)
			}
		})
	}
}

func TestSettingsOfFlushesAreChecked(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for body, want := range map[string]string{
		`{"mode":"sometimes"}`:                         "mode",
		`{"mode":"flush","tokens":10}`:                 "flush.tokens is 10",
		`{"mode":"flush","max_steps":11}`:              "flush.max_steps is 11",
		`{"mode":"flush","timeout_seconds":301}`:       "flush.timeout_seconds is 301",
		`{"mode":"flush","before_compaction":false}`:   "nothing would begin the turn",
		`{"mode":"flush","soft_tokens":-1}`:            "flush.soft_tokens is -1",
		`{"mode":"flush","instructions":` + long + `}`: "flush.instructions has 20001 characters",
	} {
		if got := c.call("PATCH", "/v1/agents/"+agent, `{"flush":`+body+`}`); got.Code != 422 && got.Code != 400 ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%.60s: got %d %.200s, want %q", body, got.Code, got.Text, want)
		}
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"flush":{"mode":"checkpoint"}}`)
	if got := pick(t, c.must("GET", "/v1/agents/"+agent, ""), "flush"); got != `{"flush":{"mode":"checkpoint"}}` {
		t.Errorf("got %s", got)
	}
	for _, body := range []string{`{"purpose":"flush","messages":[{"role":"user","content":"x"}]}`,
		`{"purpose":"nap","messages":[{"role":"user","content":"x"}]}`,
		`{"accept":"everything","messages":[{"role":"user","content":"x"}]}`} {
		if got := c.call("POST", "/v1/agents/"+agent+"/step", body); got.Code != 422 {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
}

var long = `"` + strings.Repeat("x", 20_001) + `"`
