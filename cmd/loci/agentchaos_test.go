package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/server/loop/model/modeltest"
)

// turnOf finds the number of the turn in the last message of a prompt.
var turnOf = regexp.MustCompile(`turn-(\d+)\.`)

// scriptedTurn answers each turn of a user by two calls and a text. What it answers follows from the prompt alone.
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
	turn, step, _ := strings.Cut(strings.TrimPrefix(last.ToolCallID, "turn-"), "-")
	switch {
	case last.Role == "user":
		turn = turnOf.FindStringSubmatch(fmt.Sprint(last.Content))[1]
		return modeltest.Answer{Wait: soon, Calls: []modeltest.Call{{ID: "turn-" + turn + "-1", Name: "core_memory_append",
			Arguments: `{"label":"facts","content":"fact-` + turn + `."}`}}}
	case step == "1":
		return modeltest.Answer{Wait: soon, Calls: []modeltest.Call{{ID: "turn-" + turn + "-2", Name: "conversation_search",
			Arguments: `{"query":"turn"}`}}}
	}
	return modeltest.Answer{Wait: soon, Text: "Noted " + turn + "."}
}

// Two servers are killed at random moments while an agent works on one turn after the other. Its client sends a turn
// again until it is answered. The log and the agent's memory are as if nothing had happened. LOCI_CHAOS_TURNS says how
// many turns, LOCI_CHAOS_SEED repeats a run.
func TestAnAgentLosesAndRepeatsNothingWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	turns := number(t, "LOCI_CHAOS_TURNS", scale.Of(12, 60, 500))
	seed := number(t, "LOCI_CHAOS_SEED", int(time.Now().UnixNano()&0x7fffffff))
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_TURNS=%d", seed, turns)
	m := modeltest.New(t)
	m.Reply = scriptedTurn
	servers := launchTwo(t, "--database-url="+dbtest.EmptyURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	p := &program{t: t, base: servers[0].url()}
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a", "tool_set": "all",
		"memory_blocks": []any{map[string]any{"label": "facts", "value": "Facts:"}}}).ID
	ctx, stop := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	killing.Go(func() {
		dice := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // repeatable
		for wait(ctx, time.Duration(50+dice.IntN(400))*time.Millisecond) {
			victim := servers[dice.IntN(2)]
			victim.kill()
			victim.start() //nolint:contextcheck // it ends with the test
		}
	})
	want := []string{}
	for turn := range turns {
		sendTurn(t, servers, agent, turn)
		want = append(want, fmt.Sprintf("user_message turn-%d.", turn), fmt.Sprintf("tool_call_message turn-%d-1", turn),
			fmt.Sprintf("tool_return_message turn-%d-1 success", turn), fmt.Sprintf("tool_call_message turn-%d-2", turn),
			fmt.Sprintf("tool_return_message turn-%d-2 success", turn), fmt.Sprintf("assistant_message Noted %d.", turn))
	}
	stop()
	killing.Wait()
	p.base = servers[0].url()
	var got []string
	for _, item := range call[[]map[string]any](p, "GET", "/v1/agents/"+agent+"/messages?order=asc&limit=1000", nil)[1:] {
		text := fmt.Sprint(item["message_type"])
		switch item["message_type"] {
		case "summary_message": // the window was full; what a summary hides stays in the log
			continue
		case "tool_call_message":
			text += " " + fmt.Sprint(item["tool_call"].(map[string]any)["tool_call_id"])
		case "tool_return_message":
			text += " " + fmt.Sprint(item["tool_call_id"]) + " " + fmt.Sprint(item["status"])
		default:
			text += " " + fmt.Sprint(item["content"])
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s\nfirst server:\n%s\nsecond server:\n%s", diff, servers[0].log, servers[1].log)
	}
	facts := call[map[string]any](p, "GET", "/v1/agents/"+agent+"/core-memory/blocks/facts", nil)["value"]
	for turn := range turns {
		if n := strings.Count(fmt.Sprint(facts), fmt.Sprintf("fact-%d.", turn)); n != 1 {
			t.Errorf("fact %d is in memory %d times: %v", turn, n, facts)
		}
	}
}

// sendTurn sends a turn to one server or the other until it is answered.
func sendTurn(t *testing.T, servers []*serverProcess, agent string, turn int) {
	t.Helper()
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":"turn-%d.","otid":"turn-%[1]d"}]}`, turn)
	said := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, s := range servers {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			status, answer, err := post(ctx, s.url()+"/v1/agents/"+agent+"/messages", body)
			cancel()
			if err == nil && status == http.StatusOK && bytes.Contains(answer, []byte(`"end_turn"`)) {
				return
			}
			said = fmt.Sprintf("%d %.300s (%v)", status, answer, err)
			wait(t.Context(), 50*time.Millisecond) // a server is gone, or works on the turn
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
