package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// usages are the same counts in each provider's form: a prompt of 100 tokens, of which a cache had 80.
var usages = map[string]string{
	"openai": `{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80}}`,
	"anthropic": `{"input_tokens":10,"cache_read_input_tokens":80,"cache_creation_input_tokens":10,
		"output_tokens":5}`,
	"responses": `{"input_tokens":100,"input_tokens_details":{"cached_tokens":80},"output_tokens":5}`,
}

// counted is what models counted, as the API shows it.
type counted struct {
	Answers, Prompt, Completion, Read, Write int
}

func (c *counted) UnmarshalJSON(raw []byte) error {
	var of map[string]any
	err := json.Unmarshal(raw, &of)
	n := func(name string) int { n, _ := of[name].(float64); return int(n) }
	*c = counted{n("answers"), n("prompt_tokens"), n("completion_tokens"), n("cached_input_tokens"),
		n("cache_write_tokens")}
	return err
}

// What a cache had and took is shown by agent and by day: of answers that a program reports, and of the steps of runs.
// A replay of the conversation has its cost.
func TestTheUsageShowsWhatACacheHad(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"anthropic/claude-sonnet-4-5"}`)
	for format, usage := range usages {
		r.step(r.agent, `{"format":"`+format+`","messages":[{"role":"user","content":"Hello?"}]}`)
		answer := map[string]string{
			"openai":    `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Hi."}}],"usage":%s}`,
			"anthropic": `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi."}],"usage":%s}`,
			"responses": `{"object":"response","output":[{"type":"message","role":"assistant","content":[{"type":` +
				`"output_text","text":"Hi."}]}],"usage":%s}`}[format]
		r.step(r.agent, `{"format":"`+format+`","response":`+fmt.Sprintf(answer, usage)+`}`)
	}
	r.model.Says(modeltest.Answer{Text: "Done.", PromptTokens: 50}) // of them one from a cache
	r.send(`{"messages":[{"role":"user","content":"And?"}]}`)
	type usage struct {
		AgentID string `json:"agent_id"`
		Total   counted
		Days    []json.RawMessage
	}
	var got usage
	if err := json.Unmarshal([]byte(r.must("GET", "/v1/agents/"+r.agent+"/usage", "")), &got); err != nil {
		t.Fatal(err)
	}
	completion := got.Total.Completion
	want := usage{AgentID: r.agent, Total: counted{4, 350, completion, 241, 10}}
	if got.Days = nil; completion < 16 || !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var day struct{ Days []struct{ Day string } }
	since := r.must("GET", "/v1/agents/"+r.agent+"/usage?start_date=2020-01-01", "")
	if err := json.Unmarshal([]byte(since), &day); err != nil || len(day.Days) == 0 ||
		day.Days[0].Day > time.Now().UTC().Format(time.DateOnly) {
		t.Errorf("the days: %+v, %v", day, err)
	}
	if got := r.must("GET", "/v1/agents/"+r.agent+"/usage?end_date=2020-01-01", ""); !strings.Contains(got, `"days":[]`) {
		t.Errorf("before the first day: %s", got)
	}
	if steps := r.list("/v1/steps?agent_id=" + r.agent); len(steps) != 1 || steps[0]["cached_input_tokens"] != 1.0 {
		t.Errorf("the steps: %v", steps)
	}
	if at := r.must("GET", "/v1/agents/"+r.agent+"/context?at_seq=9000000000", ""); !strings.Contains(at, `"tokens":{`) {
		t.Errorf("the last prompt: %s", at)
	}
}
