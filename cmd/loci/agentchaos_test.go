package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// turnOf matches the number of the turn in a prompt's last message.
var turnOf = regexp.MustCompile(`turn-(\d+)\.`)

// stormCalls is how many tools an answer of a storm calls. Each eighth turn has a storm.
const stormCalls = 8

// scriptedTurn answers each turn of a user with two calls, or a storm of calls, and then a text. The answer depends
// only on the prompt.
func scriptedTurn(asked modeltest.Asked) modeltest.Answer {
	var messages []struct {
		Role       string `json:"role"`
		Content    any    `json:"content"`
		ToolCallID string `json:"tool_call_id"`
	}
	if json.Unmarshal(asked.Fields["messages"], &messages) != nil || len(messages) == 0 {
		return modeltest.Answer{Text: "There is no message."}
	}
	soon := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(soon) })
	last := messages[len(messages)-1]
	for i := len(messages) - 1; i > 0 && last.ToolCallID == "" && !turnOf.MatchString(fmt.Sprint(last.Content)); i-- {
		last = messages[i-1] // a system warning may be the last message
	}
	turn, step, _ := strings.Cut(strings.TrimPrefix(last.ToolCallID, "turn-"), "-")
	switch {
	case last.Role == "user":
		turn = turnOf.FindStringSubmatch(fmt.Sprint(last.Content))[1]
		if n, _ := strconv.Atoi(turn); n%8 == 5 {
			storm := modeltest.Answer{Wait: soon}
			for i := range stormCalls {
				storm.Calls = append(storm.Calls, modeltest.Call{ID: fmt.Sprintf("turn-%s-9%d", turn, i),
					Name: "core_memory_replace", Arguments: `{"label":"facts","old_content":"Facts","new_content":"Facts"}`})
			}
			storm.Calls[0].Name, storm.Calls[0].Arguments = "core_memory_append", `{"label":"facts","content":"fact-`+turn+`."}`
			return storm
		}
		return modeltest.Answer{Wait: soon, Calls: []modeltest.Call{{ID: "turn-" + turn + "-1", Name: "core_memory_append",
			Arguments: `{"label":"facts","content":"fact-` + turn + `."}`}}}
	case step == "1":
		return modeltest.Answer{Wait: soon, Calls: []modeltest.Call{{ID: "turn-" + turn + "-2", Name: "conversation_search",
			Arguments: `{"query":"turn"}`}}}
	}
	return modeltest.Answer{Wait: soon, Text: "Noted " + turn + "."}
}

// faulty returns a scripted model that fails at every fifth request, but not twice in a row, while on is set.
func faulty(on *atomic.Bool) func(modeltest.Asked) modeltest.Answer {
	var asked atomic.Int64
	return func(r modeltest.Asked) modeltest.Answer {
		a := scriptedTurn(r)
		if n := asked.Add(1); on.Load() && n%5 == 0 {
			switch n / 5 % 5 {
			case 0:
				return modeltest.Answer{Status: http.StatusInternalServerError}
			case 1:
				return modeltest.Answer{Status: http.StatusTooManyRequests}
			case 2:
				a.Cut = true
			case 3:
				return modeltest.Answer{Raw: "data: {]\n\n"}
			default:
				return modeltest.Answer{Reasoning: "Nothing else."}
			}
		}
		return a
	}
}

// agentOf creates an agent that fills its window after some turns.
func agentOf(p *program) string {
	return call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a", "tool_set": "all",
		"context_window_limit": 16_000, "memory_blocks": []any{map[string]any{"label": "facts", "value": "Facts:"}}}).ID
}

// saidBy returns an agent's log, without ids and times, and its number of summaries. Summarized messages stay in the
// log. The positions of summaries and warnings depend on timing.
func saidBy(p *program, agent string) (said []string, summaries int) {
	const page = 1000
	path := fmt.Sprintf("/v1/agents/%s/messages?order=asc&limit=%d", agent, page)
	for after := ""; ; {
		items := call[[]map[string]any](p, "GET", path+after, nil)
		for _, item := range items {
			text := fmt.Sprint(item["message_type"])
			switch item["message_type"] {
			case "summary_message":
				summaries++
				continue
			case "system_message":
				continue
			case "tool_call_message":
				for _, c := range item["tool_calls"].([]any) {
					text += " " + fmt.Sprint(c.(map[string]any)["tool_call_id"])
				}
			case "tool_return_message":
				text += " " + fmt.Sprint(item["tool_call_id"]) + " " + fmt.Sprint(item["status"])
			default:
				text += " " + fmt.Sprint(item["content"])
			}
			said = append(said, text)
		}
		if len(items) < page/4 { // a message may be several items
			return said, summaries
		}
		after = "&after=" + fmt.Sprint(items[len(items)-1]["id"])
	}
}

// Two servers are killed at random moments while an agent works on one turn after another. Some turns call many tools,
// and the model fails now and then. The client sends a turn again until it is answered, and histories are summarized
// meanwhile. In the end, the log and the agent's memory are the same as those of an undisturbed agent. LOCI_CHAOS_TURNS
// sets the number of turns; LOCI_CHAOS_SEED repeats a run.
func TestAnAgentLosesAndRepeatsNothingWhenServersAreKilled(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	turns := number(t, "LOCI_CHAOS_TURNS", scale.Of(9, 200))
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_TURNS=%d", seed, turns)
	m := modeltest.New(t)
	var faults atomic.Bool
	faults.Store(true)
	m.Reply = faulty(&faults)
	servers := launchTwo(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	p := &program{t: t, base: servers[0].url()}
	agent, calm := agentOf(p), agentOf(p)
	enough := killInTurn(t, servers, seed)
	for turn := range turns {
		sendTurn(t, servers, agent, turn)
	}
	enough()
	faults.Store(false)
	for turn := range turns {
		sendTurn(t, servers[:1], calm, turn)
	}
	p.base = servers[0].url()
	want, _ := saidBy(p, calm)
	got, summaries := saidBy(p, agent)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 6*turns || summaries == 0 {
		t.Errorf("%d items, %d summaries; the log (-calm +chaos):\n%s\nfirst server:\n%s\nsecond server:\n%s", len(want),
			summaries, diff, servers[0].log, servers[1].log)
	}
	p.remembersOnce(agent, turns)
}

// remembersOnce checks that an agent's memory contains the fact of each turn once.
func (p *program) remembersOnce(agent string, turns int) {
	p.t.Helper()
	facts := call[map[string]any](p, "GET", "/v1/agents/"+agent+"/core-memory/blocks/facts", nil)["value"]
	for turn := range turns {
		if n := strings.Count(fmt.Sprint(facts), fmt.Sprintf("fact-%d.", turn)); n != 1 {
			p.t.Errorf("fact %d is in memory %d times: %v", turn, n, facts)
		}
	}
}

// turnBody returns the request for a turn.
func turnBody(agent string, turn int) string {
	return fmt.Sprintf(`{"messages":[{"role":"user","content":"turn-%d.%s","otid":"%s-%[1]d"}]}`, turn,
		strings.Repeat(" So it goes on and on.", 100), agent)
}

// sendTurn sends a turn to one server or the other until it is answered.
func sendTurn(t testing.TB, servers []*serverProcess, agent string, turn int) {
	t.Helper()
	body, said := turnBody(agent, turn), ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, s := range servers {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			status, answer, err := post(ctx, s.url()+"/v1/agents/"+agent+"/messages", body)
			cancel()
			if err == nil && status == http.StatusOK && bytes.Contains(answer, []byte(`"end_turn"`)) {
				return
			}
			said = fmt.Sprintf("%d %.300s (%v)", status, answer, err)
			db.Pause(t.Context(), 50*time.Millisecond) // a server is gone, or works on the turn
		}
	}
	t.Fatalf("turn %d is not answered: %s", turn, said)
}

func post(ctx context.Context, url, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	answer, err = io.ReadAll(reply.Body)
	return reply.StatusCode, answer, err
}
