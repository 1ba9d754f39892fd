package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat/chattest"
)

// drawnHistory draws a conversation that a provider's model could have had: questions with images, thoughts in the
// provider's form, texts, parallel calls, and their results. Results may be errors, and may contain images.
func drawnHistory(t *rapid.T, format string) (all []recall.Draft) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab ñ世\"\\<&\n\u2028🙂'{}")), 1, 20, -1)
	text := func() recall.Part {
		return recall.Part{Type: recall.Text, Text: "w" + word.Draw(t, "text") + "."}
	}
	image := json.RawMessage(`{"data":"aGk=","media_type":"image/png","type":"base64"}`)
	call := 0
	for range rapid.IntRange(1, 6).Draw(t, "turns") {
		question := []recall.Part{text()}
		if rapid.Bool().Draw(t, "image") {
			question = append(question, recall.Part{Type: recall.Image, Source: image})
		}
		all = append(all, recall.Draft{Role: recall.User, Content: question})
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			answer, results := drawnThoughts(t, format), []recall.Part{}
			if format == "openai" {
				answer = rapid.SampledFrom(besideContent).Draw(t, "thought")
			}
			if rapid.Bool().Draw(t, "words") {
				answer = append(slices.Clip(answer), drawnForm(t, format, text()))
			}
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				call++
				id := fmt.Sprintf("call_%d", call)
				answer = append(slices.Clip(answer), drawnForm(t, format,
					recall.Part{Type: recall.ToolCall, CallID: id, Name: "look",
						Input: `{"a":` + string(encoded(word.Draw(t, "argument"))) + `}`}))
				r := recall.Part{Type: recall.ToolReturn, CallID: id,
					IsError: format == "anthropic" && rapid.Bool().Draw(t, "error")}
				content := []recall.Part{text()}
				if format != "openai" {
					content = rapid.SliceOfN(rapid.SampledFrom([]recall.Part{text(), {Type: recall.Image, Source: image}}), 1, 4).
						Draw(t, "returned")
				}
				r.SetReturned(content)
				results = append(results, r)
			}
			all = append(all, recall.Draft{Role: recall.Assistant, Content: answer},
				recall.Draft{Role: recall.Tool, Content: results})
		}
		all = append(all, recall.Draft{Role: recall.Assistant, Content: append(drawnThoughts(t, format),
			drawnForm(t, format, text()))})
	}
	return all
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// besideContent are thoughts that servers with OpenAI's format return with calls.
var besideContent = [][]recall.Part{nil,
	{{Type: recall.Reasoning, Text: "Hm, <b>.", Native: true, Kind: recall.ReasoningContent}},
	{{Type: recall.Reasoning, Text: "Hm.", Native: true, Kind: recall.ReasoningField,
		Extra: `{"chat":{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln+/==","index":1.0}]}}`}}}

// drawnForm draws a form in which a provider's API returns a text or a call.
func drawnForm(t *rapid.T, format string, p recall.Part) recall.Part {
	extras := map[string]string{
		"anthropic text":      `{"anthropic":{"citations":[{"type":"char_location","cited_text":"a <b>","start":1.0}]}}`,
		"anthropic tool_call": `{"anthropic":{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}}`,
		"responses text": `{"responses":{"annotations":[{"type":"url_citation","url":"https://x/?a&b","start_index":1.0}],` +
			`"phase":"commentary"}}`,
		"responses tool_call": `{"responses":{"namespace":"crm"}}`,
	}
	if rapid.Bool().Draw(t, "extra") {
		p.Extra = extras[format+" "+string(p.Type)]
	}
	if format == "anthropic" || p.Type == recall.Text && p.Extra != "" || !rapid.Bool().Draw(t, "kind") {
		return p
	}
	if p.Kind = recall.Refusal; p.Type == recall.ToolCall {
		p.Kind, p.Input = recall.CustomCall, "*** Begin\n+ \"a\" <b>"
	}
	return p
}

// drawnThoughts draws thoughts that only their provider can read again.
func drawnThoughts(t *rapid.T, format string) []recall.Part {
	forms := map[string][]recall.Part{
		"anthropic": {
			{Type: recall.Reasoning, Text: "Hm,\n <b> & \"so\" 世.", Native: true, Signature: "c2ln+/=="},
			{Type: recall.Reasoning, Text: "", Native: true, Signature: "b21pdHRlZA=="},
			{Type: recall.RedactedReasoning, Data: "ZW5j+/=="},
			{Type: recall.AnthropicBlock, Item: `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":1.0}}`},
		},
		"responses": {
			{Type: recall.SummarizedReasoning, CallID: "rs_1", Text: "Hm <b>.", Data: "gAAA+/==", Item: `{"id":"rs_1",` +
				`"type":"reasoning","summary":[{"type":"summary_text","text":"Hm <b>."}],"encrypted_content":"gAAA+/=="}`},
			{Type: recall.ResponsesItem, Item: `{"type":"compaction","id":"cmp_1","encrypted_content":"gBBB=","n":1.0}`},
		}}[format]
	if len(forms) == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(forms), 0, 2).Draw(t, "thoughts")
}

// roomy is an agent with a window so large that its model is never warned.
const roomy = `{"tool_set":"small","context_window_limit":1000000}`

// If a prompt is captured, in any format, the same messages are stored that the prompt was made from, and they make the
// same prompt.
func TestWhatAPromptHandsOutIsCapturedAsItWas(t *testing.T) {
	t.Parallel()
	for format, check := range map[string]func([]json.RawMessage) error{"openai": chattest.OpenAI,
		"anthropic": chattest.Anthropic, "responses": chattest.Responses} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			histories := rapid.Custom(func(rt *rapid.T) []recall.Draft { return drawnHistory(rt, format) })
			for seed := range scale.Of(25, 200) {
				first, second := c.made("/v1/agents", roomy), c.made("/v1/agents", roomy)
				if _, err := c.server.Recall.Append(t.Context(), c.org, first, recall.DefaultConversation,
					histories.Example(seed)); err != nil {
					t.Fatal(err)
				}
				sent := c.requested(first, format)
				if err := check(sent); err != nil {
					t.Fatal(err)
				}
				c.capture(second, `{"messages":`+string(encodedRaw(sent))+`}`)
				if diff := cmp.Diff(c.spoken(first), c.spoken(second)); diff != "" {
					t.Fatalf("history %d, %s\n(-first +captured):\n%s", seed, encodedRaw(sent), diff)
				}
				if diff := cmp.Diff(string(encodedRaw(sent)), string(encodedRaw(c.requested(second, format)))); diff != "" {
					t.Fatalf("history %d: the second prompt differs (-first +second):\n%s", seed, diff)
				}
			}
		})
	}
}

// encodedRaw joins raw values to a list without changing a byte of them.
func encodedRaw(all []json.RawMessage) []byte {
	texts := make([]string, len(all))
	for i, raw := range all {
		texts[i] = string(raw)
	}
	return []byte("[" + strings.Join(texts, ",") + "]")
}

// recompiled matches the time in a prompt's state.
var recompiled = regexp.MustCompile(`last recompiled: [^\\]+`)

// requested returns the messages of an agent's next prompt, without the system prompt. It masks the time in the state.
func (c *client) requested(agent, format string) []json.RawMessage {
	c.t.Helper()
	var got struct {
		Request struct{ Messages, Input []json.RawMessage }
	}
	body := recompiled.ReplaceAllString(c.must("GET", "/v1/agents/"+agent+"/prompt?format="+format, ""), "TIME")
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		c.t.Fatal(err)
	}
	if format == "openai" {
		return got.Request.Messages[1:]
	}
	return append(got.Request.Messages, got.Request.Input...)
}

// spoken returns an agent's messages. It joins consecutive messages of a role, because formats split them differently.
func (c *client) spoken(agent string) (all []recall.Draft) {
	for _, m := range c.log(agent) {
		if n := len(all); n > 0 && all[n-1].Role == m.Role {
			all[n-1].Content = append(slices.Clip(all[n-1].Content), m.Content...)
			continue
		}
		all = append(all, recall.Draft{Role: m.Role, Content: m.Content})
	}
	return all
}

// A request that the server returned can be captured unchanged, whatever fields it has.
func TestAWholeRequestIsCaptured(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	first := c.made("/v1/agents", `{}`)
	c.capture(first, `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]}`)
	for _, format := range []string{"anthropic", "responses"} {
		var got struct{ Request json.RawMessage }
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+first+"/prompt?format="+format, "")), &got); err != nil {
			t.Fatal(err)
		}
		second := c.made("/v1/agents", `{}`)
		c.capture(second, string(got.Request))
		if diff := cmp.Diff(c.said(first), c.said(second)); diff != "" {
			t.Errorf("%s (-first +captured):\n%s", format, diff)
		}
	}
}
