package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

const flushedFile = "/memories/flushed.md"

// survivor is a model that writes to memory in silent turns, hands over sessions, and does the tasks of sub-agents.
type survivor struct{ silentTurns atomic.Int64 }

func (s *survivor) reply(asked modeltest.Asked) modeltest.Answer {
	body := string(asked.Body)
	switch {
	case strings.Contains(body, "You hand a finished session"):
		return completion(handsOver(body))
	case string(asked.Fields["stream"]) != "true":
		return completion("The user sent turns, and each was noted.")
	}
	if index := strings.LastIndex(body, "This is a silent turn"); index >= 0 {
		return s.silentTurn(body[index:])
	}
	if answer, ok := subtask(asked); ok {
		return answer
	}
	return scriptedTurn(asked)
}

// silentTurn answers the instructions of a silent turn with calls that write the same mark to three memories. It
// answers the results with a text.
func (s *survivor) silentTurn(since string) modeltest.Answer {
	if strings.Contains(since, "flushed-") {
		return modeltest.Answer{Text: "All is written."}
	}
	n := s.silentTurns.Add(1)
	id, mark := fmt.Sprintf("flushed-%d-", n), fmt.Sprintf("flush-%d.", n)
	return modeltest.Answer{Calls: []modeltest.Call{
		{ID: id + "1", Name: "core_memory_append", Arguments: `{"label":"facts","content":"` + mark + `"}`},
		{ID: id + "2", Name: "memory_files",
			Arguments: `{"command":"insert","path":"` + flushedFile + `","insert_line":0,"insert_text":"` + mark + `\n"}`},
		{ID: id + "3", Name: "update_working_memory",
			Arguments: `{"changes":[{"field":"decisions","text":"` + mark + `"}]}`},
	}}
}

// notedTurn matches the model's text at the end of a turn, in the material of a hand-over.
var notedTurn = regexp.MustCompile(`\[seq (\d+)\] assistant: Noted (\d+)\.`)

// handsOver returns a decision and a lesson for each turn of a session.
func handsOver(body string) string {
	type item struct {
		Text string            `json:"text"`
		Seqs []json.RawMessage `json:"seqs"`
	}
	handover := map[string][]item{"done": {}, "decided": {}, "learned": {}, "open": {}, "next": {}, "entities": {}}
	for _, turn := range notedTurn.FindAllStringSubmatch(body, -1) {
		seqs := []json.RawMessage{json.RawMessage(turn[1])}
		handover["decided"] = append(handover["decided"], item{"choice-" + turn[2] + ".", seqs})
		handover["learned"] = append(handover["learned"], item{"cause-" + turn[2] + ".", seqs})
	}
	text, _ := json.Marshal(handover)
	return string(text)
}

// completion returns an answer that is not streamed.
func completion(text string) modeltest.Answer {
	raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop",
		"message": map[string]any{"role": "assistant", "content": text}}}})
	return modeltest.Answer{Raw: string(raw)}
}

var subtaskOf = regexp.MustCompile(`subtask-(\d+)[.-]`)

// subtask answers a sub-agent's task with a call that writes to memory, and the call's result with a text.
func subtask(asked modeltest.Asked) (a modeltest.Answer, ok bool) {
	var messages []struct {
		Role       string `json:"role"`
		Content    any    `json:"content"`
		ToolCallID string `json:"tool_call_id"`
	}
	_ = json.Unmarshal(asked.Fields["messages"], &messages)
	for _, m := range slices.Backward(messages) {
		n := subtaskOf.FindStringSubmatch(m.ToolCallID)
		switch {
		case n != nil:
			return modeltest.Answer{Text: "found-" + n[1] + "."}, true
		case m.Role == "tool":
			return a, false
		case m.Role != "user" || strings.Contains(fmt.Sprint(m.Content), "<current_state>"):
			continue
		}
		if n = subtaskOf.FindStringSubmatch(fmt.Sprint(m.Content)); n == nil {
			return a, false
		}
		return modeltest.Answer{Calls: []modeltest.Call{{ID: "subtask-" + n[1] + "-1", Name: "core_memory_append",
			Arguments: `{"label":"facts","content":"sub-` + n[1] + `."}`}}}, true
	}
	return a, false
}

// survival is two servers that are killed, and an agent with a memory that must outlive them.
type survival struct {
	*program
	servers  []*serverProcess
	agent    string
	children int // number of requested sub-agents
}

// Two servers are killed at random moments while an agent works: between silent turns and the compactions after them,
// while sessions are handed over, and while sub-agents work and return. In the end, memory has each mark of a silent
// turn as often as the log says that it was written. Each turn was handed over once, and each sub-agent has returned
// once. LOCI_CHAOS_ROUNDS sets the number of turns; LOCI_CHAOS_SEED repeats a run.
func TestFlushesAndHandoversOutliveKilledServers(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	turns := number(t, "LOCI_CHAOS_ROUNDS", scale.Of(4, 200))
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_ROUNDS=%d", seed, turns)
	m, script := modeltest.New(t), &survivor{}
	m.Reply = script.reply
	servers := launchTwo(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+m.BaseURL(), "--llm-model=m",
		"--log-level=warn")
	for begun := 0; begun < turns; begun += agentTurns {
		s := &survival{program: &program{t: t, base: servers[0].url()}, servers: servers}
		s.live(min(agentTurns, turns-begun), seed+begun)
	}
	if t.Failed() {
		t.Logf("first server:\n%s\nsecond server:\n%s", servers[0].log, servers[1].log)
	}
}

// agentTurns is how many turns an agent has room for. Each turn leaves facts in memory, and its prompt shows all facts.
const agentTurns = 100

// live creates an agent, lets it work while servers are killed, and checks its memory.
func (s *survival) live(turns, seed int) {
	s.t.Helper()
	s.create()
	enough := killInTurn(s.t, s.servers, seed)
	for turn := range turns {
		s.work(turn)
	}
	enough()
	s.base = s.servers[0].url()
	s.until(http.MethodPost, "/handover", `{}`)
	s.checkHandovers(turns)
	s.checkFlushes()
	s.checkChildren()
	s.checkOnce("fact", turns)
}

// create creates the agent. Its window is full after some turns.
func (s *survival) create() {
	s.agent = call[identified](s.program, "POST", "/v1/agents", map[string]any{"name": "a", "include_base_tools": false,
		"tools": []string{"core_memory_append", "core_memory_replace", "conversation_search", "memory_files",
			"update_working_memory"},
		"context_window_limit": 8_000, "flush": map[string]any{"mode": "flush"},
		"memory_blocks": []any{map[string]any{"label": "facts", "value": "Facts:"}}}).ID
	call[map[string]any](s.program, "POST", "/v1/agents/"+s.agent+"/memory-tree/command",
		map[string]any{"command": "create", "path": flushedFile, "file_text": "Written in silent turns\n"})
}

// work sends a turn. After some turns, it hands the session over, or gives a task to a sub-agent.
func (s *survival) work(turn int) {
	s.t.Helper()
	sendTurn(s.t, s.servers, s.agent, turn)
	switch turn % 6 {
	case 1, 3:
		mode := `"fork"`
		if turn%6 == 3 {
			mode = `"blank","blocks":[{"id":"facts","read_only":false}]`
		}
		s.until(http.MethodPost, "/children", fmt.Sprintf(`{"mode":%s,"task":"subtask-%d.","run":true,"otid":"child-%[2]d",
			"tools":["core_memory_append"]}`, mode, s.children))
		s.children++
	case 5:
		s.until(http.MethodPost, "/handover", `{}`)
	}
}

// until sends a request to one server or the other until it succeeds.
func (s *survival) until(method, path, body string) {
	s.t.Helper()
	said := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); db.Pause(s.t.Context(), 20*time.Millisecond) {
		for _, server := range s.servers {
			status, answer, err := post(s.t.Context(), server.url()+"/v1/agents/"+s.agent+path, body)
			if err == nil && status < 300 {
				return
			}
			said = fmt.Sprintf("%d %.300s (%v)", status, answer, err)
		}
	}
	s.t.Fatalf("%s %s has no success: %s", method, path, said)
}

// list returns a list of the agent.
func (s *survival) list(path string) []map[string]any {
	s.t.Helper()
	return call[[]map[string]any](s.program, "GET", "/v1/agents/"+s.agent+path, nil)
}

func (s *survival) facts() string {
	s.t.Helper()
	return fmt.Sprint(call[map[string]any](s.program, "GET", "/v1/agents/"+s.agent+"/core-memory/blocks/facts",
		nil)["value"])
}

// file returns the text of a memory file.
func (s *survival) file(path string) string {
	s.t.Helper()
	tree := call[identified](s.program, "GET", "/v1/agents/"+s.agent+"/memory-tree", nil).ID
	return fmt.Sprint(call[map[string]any](s.program, "GET", "/v1/memory-trees/"+tree+"/file?path="+path, nil)["content"])
}

// decisions returns the decisions in working memory.
func (s *survival) decisions() string {
	s.t.Helper()
	return fmt.Sprint(call[map[string]any](s.program, "GET", "/v1/conversations/"+s.agent+"/working-memory",
		nil)["decisions"])
}

// log returns the messages of the agent's default conversation.
func (s *survival) log() (all []map[string]any) {
	s.t.Helper()
	const page = 200
	for after := ""; ; after = fmt.Sprint("&after=", all[len(all)-1]["id"]) {
		more := call[[]map[string]any](s.program, "GET",
			fmt.Sprintf("/v1/conversations/%s/messages?order=asc&limit=%d%s", s.agent, page, after), nil)
		if all = append(all, more...); len(more) < page/4 { // a message may be several items
			return all
		}
	}
}

// checkOnce checks that the facts contain each of the first marks of a kind once.
func (s *survival) checkOnce(kind string, n int) {
	s.t.Helper()
	facts := s.facts()
	for i := range n {
		if n := strings.Count(facts, fmt.Sprintf("%s-%d.", kind, i)); n != 1 {
			s.t.Errorf("%s %d is in memory %d times", kind, i, n)
		}
	}
}

// checkFlushes checks that memory has the texts of silent turns as often as their calls succeeded.
func (s *survival) checkFlushes() {
	s.t.Helper()
	conversations := []any{s.agent}
	for _, child := range s.list("/children?limit=1000") { // a fork has silent turns, too
		conversations = append(conversations, child["conversation_id"])
	}
	var flushes []map[string]any
	for _, c := range conversations {
		flushes = append(flushes, call[[]map[string]any](s.program, "GET",
			fmt.Sprintf("/v1/conversations/%v/flushes?limit=1000", c), nil)...)
	}
	calls := 0
	for _, f := range flushes {
		calls += int(f["calls"].(float64))
	}
	places := map[string]string{"the block": s.facts(), "the memory file": s.file(flushedFile),
		"working memory": s.decisions()}
	found := 0
	for place, text := range places {
		marks := regexp.MustCompile(`flush-\d+\.`).FindAllString(text, -1)
		if slices.Sort(marks); len(slices.Compact(slices.Clone(marks))) != len(marks) {
			s.t.Errorf("%s has a mark twice: %v", place, marks)
		}
		found += len(marks)
	}
	compactions := len(s.list("/compactions?limit=100"))
	if found != calls || found == 0 || compactions == 0 {
		s.t.Errorf("%d silent turns before %d compactions wrote %d times, and memory has it %d times: %v", len(flushes),
			compactions, calls, found, places)
	}
}

// checkHandovers checks that each turn was handed over once, and that each update is once in its place.
func (s *survival) checkHandovers(turns int) {
	s.t.Helper()
	places := map[string]string{"decisions": s.decisions(), "/memories/lessons.md": s.file("/memories/lessons.md")}
	texts := map[string]int{}
	for _, h := range s.list("/handovers?limit=100") {
		if h["status"] != "done" || h["how"] != "model" {
			s.t.Errorf("a hand-over ended otherwise: %v", h)
		}
		for _, u := range h["updates"].([]any) {
			u := u.(map[string]any)
			text := fmt.Sprint(u["text"])
			texts[text]++
			if n := strings.Count(places[fmt.Sprint(u["target"])], text); u["status"] == "applied" && n != 1 {
				s.t.Errorf("the update %q is in %v %d times", text, u["target"], n)
			}
		}
	}
	for turn := range turns {
		for _, kind := range []string{"choice", "cause"} {
			if n := texts[fmt.Sprintf("%s-%d.", kind, turn)]; n != 1 {
				s.t.Errorf("%s %d is handed over %d times", kind, turn, n)
			}
		}
	}
}

// checkChildren checks that each sub-agent did its task once and returned once.
func (s *survival) checkChildren() {
	s.t.Helper()
	for deadline := time.Now().Add(patience); len(s.list("/children?status=working")) > 0; {
		if time.Now().After(deadline) || !db.Pause(s.t.Context(), 50*time.Millisecond) {
			s.t.Fatalf("sub-agents do not return: %v", s.list("/children?status=working"))
		}
	}
	s.checkOnce("sub", s.children)
	results := ""
	for _, m := range s.log() {
		if m["message_type"] == "user_message" { // summaries and searches quote them
			results += fmt.Sprint(m["content"])
		}
	}
	for i := range s.children {
		if n := strings.Count(results, fmt.Sprintf("found-%d.", i)); n != 1 {
			s.t.Errorf("the result of sub-agent %d is in the parent's log %d times", i, n)
		}
	}
	if made := s.list("/children?limit=1000"); len(made) != s.children {
		s.t.Errorf("%d sub-agents, want %d", len(made), s.children)
	}
}
