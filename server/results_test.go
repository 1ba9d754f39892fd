package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall/tokens"
)

// fit bounds a result for an agent.
func (c *client) fit(agentID, text, options string) (fitted agent.FittedResult) {
	c.t.Helper()
	body := fmt.Sprintf(`{"text":%s%s}`, quoted(text), options)
	raw := c.must("POST", "/v1/agents/"+agentID+"/results/fit", body)
	if err := json.Unmarshal([]byte(raw), &fitted); err != nil {
		c.t.Fatal(err)
	}
	return fitted
}

// refuses checks that a request is refused with some words.
func (c *client) refuses(method, target, body string, status int, says string) {
	c.t.Helper()
	if got := c.call(method, target, body); got.Code != status || !strings.Contains(got.Text, says) {
		c.t.Errorf("%s %s %.100s: got %d %.300s, want %d with %q", method, target, body, got.Code, got.Text, status, says)
	}
}

// whole returns the text that expand reads for an id, page by page.
func (c *client) whole(agentID, id string) string {
	c.t.Helper()
	var all strings.Builder
	for offset := 0; ; {
		var page struct {
			Text string `json:"text"`
			Next *int   `json:"next_offset"`
		}
		raw := c.must("GET", fmt.Sprintf("/v1/agents/%s/expand/%s?offset=%d&limit=1048576", agentID, id, offset), "")
		if err := json.Unmarshal([]byte(raw), &page); err != nil {
			c.t.Fatal(err)
		}
		if all.WriteString(page.Text); page.Next == nil {
			return all.String()
		}
		offset = *page.Next
	}
}

// numbered returns a text with some lines.
func numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d of the log\n", i)
	}
	return b.String()
}

// rows returns a JSON list of objects.
func rows(n int) string {
	list := make([]map[string]any, n)
	for i := range list {
		list[i] = map[string]any{"id": i, "city": "Berlin", "note": strings.Repeat("x", 20)}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(raw), "},", "},\n")
}

func TestResultsAreBoundedByThePolicy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","tools":["expand"]}`)
	failed := strings.Repeat("compiling a package\n", 2_000) + "FATAL: the build failed with exit code 2\n"
	for _, tt := range []struct {
		name, text, policy, step string
		has, lacks               []string
		mostTokens               int
	}{
		{"a short result is whole", "done\n", `"alyx"`, "", []string{"done\n"}, nil, 10},
		{"Letta's way shows a long result whole up to the bound of the log", numbered(2_000), `"letta"`, "",
			[]string{"line 1999 "}, nil, 30_000},
		{"a result beyond the bound of the log shows its beginning", numbered(5_000), `"letta"`, "offload",
			[]string{"line 0 ", "characters left out"}, []string{"line 4999 "}, 1_000},
		{"rows of JSON are whole", rows(2_000), `{"steps":[{"step":"largest_slice","budget_tokens":900}]}`, "largest_slice",
			[]string{`"id":0`, " of 2000 rows"}, []string{`"id":1999`}, 900},
		{"lines are whole", numbered(5_000), `{"steps":[{"step":"largest_slice","budget_tokens":900}]}`, "largest_slice",
			[]string{"line 0 ", " of 5000 rows"}, []string{"line 4999 "}, 900},
		{"head and tail", numbered(5_000), `"four-layers"`, "snip", []string{"line 0 ", "line 4999 "}, []string{"line 2500 "},
			4_000},
		{"an end that says how it went", failed, `"openclaw"`, "important_tail",
			[]string{"compiling", "FATAL: the build failed"}, nil, 6_000},
		{"a preview of an object", `{"rows":` + rows(3_000) + `,"total":3000}`, `"alyx"`, "json_preview",
			[]string{"preview of JSON", "2996 of 3000 items", `"total":3000`}, nil, 10_000},
		{"tokens", numbered(5_000), `"deck"`, "token_clip", []string{"line 0 ", "line 4999 "}, nil, 1_500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := c.fit(id, tt.text, `,"tool":"shell","policy":`+tt.policy)
			if got.Step == nil != (tt.step == "") || got.Step != nil && *got.Step != tt.step || got.Tokens > tt.mostTokens {
				t.Errorf("step %v with %d tokens, want %q with at most %d", got.Step, got.Tokens, tt.step, tt.mostTokens)
			}
			for _, text := range tt.has {
				if !strings.Contains(got.Text, text) {
					t.Errorf("the text lacks %q: %.3000s", text, got.Text)
				}
			}
			for _, text := range tt.lacks {
				if strings.Contains(got.Text, text) {
					t.Errorf("the text has %q", text)
				}
			}
			if got.TotalBytes != len(tt.text) || got.TotalChars != utf8.RuneCountInString(tt.text) {
				t.Errorf("%d bytes, %d characters of %d", got.TotalBytes, got.TotalChars, len(tt.text))
			}
			if tt.step == "" {
				if got.ID != nil || got.Text != tt.text {
					t.Errorf("a whole result has the id %v", got.ID)
				}
				return
			}
			if whole := c.whole(id, *got.ID); whole != tt.text {
				t.Errorf("expand reads %d bytes of %d", len(whole), len(tt.text))
			}
			if !strings.Contains(got.Text, *got.ID) || got.TotalTokens <= got.Tokens {
				t.Errorf("the text does not lead to %s, or %d tokens are not fewer than %d", *got.ID, got.Tokens,
					got.TotalTokens)
			}
			if again := c.fit(id, tt.text, `,"policy":`+tt.policy); *again.ID != *got.ID || again.Text != got.Text {
				t.Errorf("the same result again is %s, not %s", *again.ID, *got.ID)
			}
		})
	}
}

// A result is bounded by the policy of the nearest place, as a prompt is pruned.
func TestThePolicyInForceBoundsResults(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","compaction_settings":{"policy":"four-layers"}}`)
	conversation := c.made("/v1/conversations/?agent_id="+id, `{}`)
	c.must("PATCH", "/v1/conversations/"+conversation, `{"compaction_settings":{"policy":"deck"}}`)
	text := numbered(5_000)
	for options, want := range map[string]string{"": "snip", `,"conversation_id":"` + conversation + `"`: "token_clip",
		`,"policy":{"steps":{"snip":{"max_chars":500}}}`: "snip", `,"policy":"claude-code"`: "offload"} {
		if got := c.fit(id, text, options); got.Step == nil || *got.Step != want {
			t.Errorf("with %s the step is %v, want %s", options, got.Step, want)
		}
	}
	short := c.fit(id, text, `,"policy":{"steps":{"snip":{"max_chars":500}}}`)
	if short.Tokens > 300 || short.Policy != "four-layers (changed)" {
		t.Errorf("a call's own number: %d tokens under %s", short.Tokens, short.Policy)
	}
	// If a step exempts a tool, the tool's results are shown completely.
	if got := c.fit(id, numbered(600), `,"tool":"expand","policy":"deck"`); got.ID != nil {
		t.Errorf("the result of an exempted tool is bounded by %s", *got.Step)
	}
}

// Where the model's vocabulary is known, a bound in tokens is filled to the token or nearly so, whatever the text.
func TestBoundsAreCountedWithTheModelsVocabulary(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","model":"openai/gpt-4o","context_window_limit":200000}`)
	var digits, hex strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&digits, "%d", i*7919)
		fmt.Fprintf(&hex, "%08x", uint32(i)*2654435761)
	}
	counter := tokens.New()
	for name, text := range map[string]string{"lines": numbered(20_000), "digits": digits.String(), "hex": hex.String(),
		"Thai": strings.Repeat("ภาษาไทยเขียนติดกัน ", 4000)} {
		for preset, bound := range map[string]int{"alyx": 10_000, "deck": 1_500} {
			got := c.fit(id, text, fmt.Sprintf(`,"policy":%q`, preset))
			n := counter.Count("openai/gpt-4o", got.Text)
			if got.Tokens != n || n > bound || n < bound*95/100 {
				t.Errorf("%s under %s: %d tokens, said to be %d, of %d", name, preset, n, got.Tokens, bound)
			}
		}
	}
}

func TestResultsThatCannotBeFittedAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a"}`)
	path := "/v1/agents/" + id + "/results/fit"
	huge := quoted(strings.Repeat("x", 17<<20))
	for _, w := range []struct {
		path, body string
		status     int
		says       string
	}{
		{path, `{}`, 422, "text"},
		{path, `{"text":"x","tol":"shell"}`, 200, `"warnings":["`}, // the answer names the unknown field
		{path, `{"text":""}`, 200, `"text":""`},                    // a tool may return nothing
		{path, `{"text":7}`, 422, "text"},
		{path, `{"text":"x","policy":"lettuce"}`, 422, "There is no policy"},
		{path, `{"text":"x","policy":{"steps":{"snip":{"max_chars":1}}}}`, 422, "max_chars"},
		{path, `{"text":"x","conversation_id":"conv-123e4567-e89b-42d3-8456-426614174000"}`, 404, "onversation"},
		{path, `{"text":` + huge + `}`, 422, "it may have at most 16777216"},
		{"/v1/agents/agent-123e4567-e89b-42d3-8456-426614174000/results/fit", `{"text":"x"}`, 404, "Agent"},
	} {
		c.refuses("POST", w.path, w.body, w.status, w.says)
	}
}

// A stored result belongs to its conversation. It is deleted with the conversation, contains no secrets, and cannot be
// read by other agents.
func TestKeptResultsAreOfTheirConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id, other := c.made("/v1/agents", `{"name":"a"}`), c.made("/v1/agents", `{"name":"b"}`)
	conversation := c.made("/v1/conversations/?agent_id="+id, `{}`)
	options := `,"policy":"four-layers","conversation_id":"` + conversation + `"`
	secret := "sk-ant-" + "api03-" + strings.Repeat("Ab3dEf6hIj", 9) + "AA"
	fitted := c.fit(id, numbered(3_000)+secret+"\n", options)
	if whole := c.whole(id, *fitted.ID); strings.Contains(whole, secret) || strings.Contains(fitted.Text, secret) ||
		!strings.Contains(whole, "line 2999 ") {
		t.Errorf("the kept result has the secret, or lacks its lines: %d bytes", len(whole))
	}
	c.refuses("GET", "/v1/agents/"+other+"/expand/"+*fitted.ID, "", 404, "There is no text")
	c.must("DELETE", "/v1/conversations/"+conversation, "")
	c.refuses("GET", "/v1/agents/"+id+"/expand/"+*fitted.ID, "", 404, "There is no text")
}

// An imported agent has its stored results, even under new ids, which its messages then name.
func TestKeptResultsGoWithTheirAgent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a"}`)
	text := numbered(3_000)
	fitted := c.fit(id, text, `,"policy":"four-layers"`)
	c.exchanged(id, "read", `{}`, fitted.Text)
	c.exchanged(id, "expand", `{"id":"`+*fitted.ID+`"}`, "line 0 of the log")
	ids, leftOut := c.imported(c.must("GET", "/v1/agents/"+id+"/export?full=true", ""))
	if len(ids) != 1 || ids[0] == id || len(leftOut) > 0 {
		t.Fatalf("got %v, left out %q", ids, leftOut)
	}
	messages := c.must("GET", "/v1/agents/"+ids[0]+"/messages?limit=100", "")
	named := clipIDs.FindAllString(messages, -1)
	if len(named) < 2 || strings.Contains(messages, *fitted.ID) {
		t.Fatalf("the messages name %q: %.3000s", named, messages)
	}
	for _, name := range named {
		if whole := c.whole(ids[0], name); whole != text {
			t.Errorf("expand reads %d bytes of %d by %s", len(whole), len(text), name)
		}
	}
	if whole := c.whole(id, *fitted.ID); whole != text {
		t.Errorf("the original has %d bytes of %d", len(whole), len(text))
	}
}

// An erasure removes a text from a stored result, and nothing else.
func TestAnErasureFindsKeptResults(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a"}`)
	text := numbered(3_000)
	fitted := c.fit(id, text+"by Qzx7741\n"+text, `,"policy":"four-layers"`)
	c.erased("Qzx7741")
	if whole := c.whole(id, *fitted.ID); whole != text+"by […]\n"+text {
		t.Errorf("the result has %d bytes: %.60q", len(whole), whole[len(text)-20:])
	}
	if again := c.fit(id, text+"by […]\n"+text, `,"policy":"four-layers"`); *again.ID != *fitted.ID {
		t.Errorf("the erased result is kept twice: %s, %s", *fitted.ID, *again.ID)
	}
}
