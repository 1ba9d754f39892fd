package server_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// If a body contains a text that Postgres cannot store, it is refused, and nothing is stored. No text is silently
// changed.
func TestTextsThatCannotBeStoredAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":"Ada."}]}`)
	archive := c.made("/v1/archives", `{"name":"a"}`)
	path := "/v1/agents/" + agent
	for _, r := range []struct{ method, target, body, field string }{
		{"POST", "/v1/agents", `{"name":"a%s"}`, "body.name"},
		{"POST", "/v1/agents", `{"metadata":{"a":["%s"]}}`, "body.metadata.a[0]"},
		{"POST", "/v1/agents", `{"metadata":{"%s":1}}`, "body.metadata."},
		{"POST", "/v1/blocks", `{"label":"x","value":"a%sb"}`, "body.value"},
		{"PATCH", path + "/core-memory/blocks/human", `{"value":"a%sb"}`, "body.value"},
		{"POST", path + "/archival-memory", `{"text":"a%sb"}`, "body.text"},
		{"POST", "/v1/archives/" + archive + "/passages", `{"text":"a","tags":["%s"]}`, "body.tags[0]"},
		{"POST", "/v1/archives/" + archive + "/passages/batch", `{"passages":[{"text":"b"},{"text":"a%sb"}]}`,
			"body.passages[1].text"},
		{"POST", "/v1/folders", `{"name":"a%sb"}`, "body.name"},
		{"POST", path + "/messages/capture", `{"messages":[{"role":"user","content":"x","otid":"o%s"}]}`,
			"body.messages[0].otid"},
		{"POST", path + "/messages/capture", `{"conversation_id":"a%s","messages":[]}`, "body.conversation_id"},
		{"POST", path + "/step", `{"otid":"o%s","messages":[{"role":"user","content":"x"}]}`, "body.otid"},
		{"POST", path + "/messages", `{"messages":[{"role":"user","content":"x","otid":"o%s"}]}`, "body.messages[0].otid"},
		{"POST", path + "/messages", `{"input":"x","client_tools":[{"name":"a","description":"%s"}]}`,
			"body.client_tools[0].description"},
	} {
		for _, text := range []string{`\u0000`, `\ud800`, `\udc00\ud800`, `\uD800x`, "\xff", "\xed\xa0\x80"} {
			got := c.call(r.method, r.target, fmt.Sprintf(r.body, text))
			detail, _ := fields(t, got.Text)["detail"].(string)
			if got.Code != 422 || !strings.HasPrefix(detail, r.field) || !strings.Contains(detail, "cannot be stored") {
				t.Errorf("%s %s with %q: got %d %s", r.method, r.target, text, got.Code, got.Text)
			}
		}
	}
	if got := c.list(path + "/messages"); len(got) > 1 {
		t.Errorf("stored %v", got)
	}
	for _, text := range []string{`\ud83d\ude00`, `\\u0000`, `\\ud800`, "é", `\n`, `\u2400`} {
		c.must("POST", "/v1/blocks", fmt.Sprintf(`{"label":"x","value":"a%sb"}`, text))
	}
}

// Messages with such characters are stored, with signs in their place, because a refused tool result would leave its
// call waiting. A warning names the place.
func TestMessagesShowWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	r := newRunner(t, askingAgent)
	const said, want = `a\u0000b\ud800c`, "a␀b\uFFFDc"
	type warned struct{ body, place string }
	path := "/v1/agents/" + r.agent
	capture := []warned{
		{`{"messages":[{"role":"user","content":"` + said + `"}]}`, "messages[0].content"},
		{`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f",
			"arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"` + said + `"}]}`, "messages[1].content"},
		{`{"messages":[{"role":"assistant","content":[{"type":"text","text":"` + said + `"}]}]}`,
			"messages[0].content[0].text"},
	}
	for _, w := range capture {
		got := r.must("POST", path+"/messages/capture", w.body)
		if !strings.Contains(got, "body."+w.place) || !strings.Contains(got, `\u2400`) {
			t.Errorf("%s: no warning in %s", w.body, got)
		}
	}
	step := r.must("POST", path+"/step",
		`{"response":{"choices":[{"message":{"role":"assistant","content":"`+said+`"}}]}}`)
	if !strings.Contains(step, "body.response.choices[0].message.content") {
		t.Errorf("a step: no warning in %s", step)
	}
	r.asks()
	r.model.Says(modeltest.Answer{Text: "Well."})
	result := strings.Replace(approvals("o", denyI, resultW), "Rain", said, 1)
	if got := r.send(result); got.StopReason.StopReason != "end_turn" {
		t.Errorf("a result: got %+v", got)
	}
	n := 0
	for _, line := range r.log() {
		n += strings.Count(line, want)
	}
	if all := r.must("GET", r.path()+"?limit=100", ""); strings.Count(all, want) < 5 {
		t.Errorf("%d texts are %q in %s", n, want, all)
	}
}

// A model's answer with such characters is stored, with signs in their place, and its stream shows the same.
func TestAnAnswerThatCannotBeStoredIsShown(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	args := `{"label":"human","new_string":"Tea\u0000 and \ud800cake."}`
	for name, options := range map[string]string{"JSON": "", "pieces": `,"stream_tokens":true,"streaming":true`,
		"background": `,"stream_tokens":true,"streaming":true,"background":true`} {
		r.model.Says(callOf("a\x00", "memory_insert", args), modeltest.Answer{Text: "No\x00ted"})
		got := r.must("POST", r.path(), `{"input":"Hello"`+options+`}`)
		if !strings.Contains(got, "end_turn") || strings.Contains(got, `\u0000t`) {
			t.Errorf("%s: got %s", name, got)
		}
		log := r.log()
		if !slices.Contains(log, "assistant_message No␀ted") || !slices.Contains(log, "tool_return_message a␀ success") {
			t.Errorf("%s: the log is %q", name, log)
		}
	}
	if got := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""); !strings.Contains(got,
		"Tea␀ and \uFFFDcake.") {
		t.Errorf("the block is %s", got)
	}
	const raw = `{"a":"x\ud83d","b":"\u0000"}`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"%s","type":"function","function":{"name":"f",` +
		`"arguments":` + strconv.Quote(raw) + `}}]}`
	path := "/v1/agents/" + r.agent
	r.must("POST", path+"/messages/capture", fmt.Sprintf(`{"messages":[`+call+`,
		{"role":"tool","tool_call_id":"captured","content":"y"},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"srv","name":"web_search","input":`+raw+`},
			{"type":"tool_use","id":"used","name":"f","input":`+raw+`}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"used","content":"y"}]}]}`, "captured"))
	r.must("POST", path+"/step", fmt.Sprintf(`{"response":{"choices":[{"message":`+call+`}]},"messages":[
		{"role":"tool","tool_call_id":"stepped","content":"y"}]}`, "stepped"))
	for _, format := range []string{"openai", "anthropic", "responses"} {
		got := r.must("GET", path+"/prompt?format="+format, "")
		if halves.MatchString(got) || strings.Contains(got, `u0000`) || strings.Count(got, "x\uFFFD") < 3 {
			t.Errorf("%s: the prompt is %s", format, got)
		}
	}
}

// halves matches the escape of half a surrogate pair, even in JSON inside a JSON string.
var halves = regexp.MustCompile(`(?i)\\ud[89a-f]`)
