package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// With settings of recall, a prompt has what the memories hold behind the user's message, and keeps it there: each next
// prompt begins with the same bytes. Without, nothing is recalled.
func TestPromptsRecall(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"model":"openai/gpt-4o","include_base_tools":false}`)
	for _, text := range []string{"Ada's dentist is Dr. Okafor in Harbour Street.", "The boiler was serviced in March.",
		"Ada's bicycle has a flat tyre."} {
		c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"`+text+`"}`)
	}
	say := func(role, text string) {
		c.must("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"`+role+`","content":"`+text+`"}]}`)
	}
	prompt := func(query string) string {
		t.Helper()
		return requestIn(t, c.must("GET", "/v1/agents/"+agent+"/prompt"+strings.ReplaceAll(query, `"`, "%22"), ""))
	}
	say("user", "Who is the dentist of Ada?")
	if got := prompt(""); strings.Contains(got, "Okafor") {
		t.Errorf("without settings the prompt recalls: %s", got)
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"recall":{"budget_tokens":200,"kinds":["passage"]}}`)
	first := prompt("")
	if strings.Count(first, "Okafor") != 1 || !strings.Contains(first, "<recalled_memory>") ||
		strings.Contains(first, "boiler") {
		t.Errorf("the note is not behind the question: %s", first)
	}
	if again := prompt(""); again != first {
		t.Errorf("the prompt changes:\n%s\n%s", first, again)
	}
	say("assistant", "Dr. Okafor.")
	say("user", "Is the bicycle of Ada fine?")
	second := prompt("")
	begin, _, _ := strings.Cut(first, "</recalled_memory>")
	if !strings.HasPrefix(second, begin) || strings.Count(second, "<recalled_memory>") != 2 ||
		!strings.Contains(second, "flat tyre") {
		t.Errorf("the second prompt does not go on from the first:\n%s\n%s", first, second)
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"recall":null}`)
	if got := prompt(""); strings.Contains(got, "recalled_memory") {
		t.Errorf("without settings the prompt has notes: %s", got)
	}
	if got := prompt(`?recall={"kinds":["passage"]}`); strings.Count(got, "<recalled_memory>") != 2 {
		t.Errorf("with settings of its own the prompt has no notes: %s", got)
	}
	step := c.must("POST", "/v1/agents/"+agent+"/step",
		`{"messages":[{"role":"assistant","content":"No."},{"role":"user","content":"Which street is the dentist in?"}],
			"recall":{"min_confidence":0}}`)
	if strings.Count(step, "recalled_memory>") < 4 {
		t.Errorf("a step with settings has no note: %s", step)
	}
	for target, body := range map[string]string{
		"GET /v1/agents/" + agent + `/prompt?recall={"budget":3}`:         "",
		"GET /v1/agents/" + agent + `/prompt?recall=on`:                   "",
		"GET /v1/agents/" + agent + `/prompt?recall={"min_confidence":2}`: "",
		"POST /v1/agents/" + agent + "/step":                              `{"messages":[],"recall":{"kinds":["x"]}}`,
		"PATCH /v1/agents/" + agent:                                       `{"recall":{"budget_tokens":1}}`,
	} {
		method, path, _ := strings.Cut(target, " ")
		r := servertest.Send(c, method, strings.ReplaceAll(path, `"`, "%22"), body)
		if r.Code < 400 || r.Code >= 500 {
			t.Errorf("%s %s: status %d, want a refusal: %s", target, body, r.Code, r.Text)
		}
	}
}

// requestIn returns the messages of the request in a prompt.
func requestIn(t *testing.T, prompt string) string {
	t.Helper()
	var p struct {
		Request struct {
			Messages json.RawMessage `json:"messages"`
		} `json:"request"`
	}
	if err := json.Unmarshal([]byte(prompt), &p); err != nil {
		t.Fatal(err)
	}
	return string(p.Request.Messages)
}
