package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// chunks joins events into a stream in OpenAI's form, with the end mark.
func chunks(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"
}

// delta is an event that adds these fields to the first choice.
func delta(fields string) string {
	return `{"choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}`
}

// ends is the event that ends an answer.
func ends(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}`
}

const (
	oslo = `{"place":"Oslo"}`
	rome = `{"place":"Rome"}`
)

// transcripts lists answers as servers similar to OpenAI's send them. want holds their meaning in lines: the thought,
// the text, and the name and arguments of each call.
var transcripts = []struct{ name, raw, want string }{
	{"OpenAI", chunks(delta(`"role":"assistant","content":""`), delta(`"content":"Hel"`), delta(`"content":"lo"`),
		ends(`"stop"`), `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}`), "text Hello\nusage 7 2"},
	{"carriage returns", strings.ReplaceAll(chunks(delta(`"content":"Hello"`), ends(`"stop"`)), "\n", "\r\n"),
		"text Hello"},
	{"comments, names, ids and no blank after the colon", ": OPENROUTER PROCESSING\n\nevent: message\nid: 1\nretry: 5\n" +
		"data:" + delta(`"content":"Hello"`) + "\n\n: ping\n\ndata:" + ends(`"stop"`) + "\n\ndata:[DONE]\n\n", "text Hello"},
	{"no lines between events", "data: " + delta(`"content":"Hel"`) + "\ndata: " + delta(`"content":"lo"`) + "\ndata: " +
		ends(`"stop"`) + "\ndata: [DONE]\n", "text Hello"},
	{"events of several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"Hello\"},\ndata: " +
		"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "text Hello"},
	{"no mark of the end", "data: " + delta(`"content":"Hello"`) + "\n\ndata: " + ends(`"stop"`) + "\n\n", "text Hello"},
	{"no line after the last event", "data: " + delta(`"content":"Hello"`) + "\n\ndata: " + ends(`"stop"`), "text Hello"},
	{"no reason of the end", chunks(delta(`"content":"Hello"`)), "text Hello"},
	{"a reason that is not known", chunks(delta(`"content":"Hello"`), ends(`"eos_token"`)), "text Hello"},
	{"a reason that is a number", chunks(delta(`"content":"Hello"`), ends(`7`)), "text Hello"},
	{"Azure", chunks(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, delta(`"content":"Hello"`),
		ends(`"stop"`), `{"choices":[],"usage":null}`), "text Hello"},
	{"nulls", chunks(`{"choices":null}`, `{"choices":[{"delta":null}]}`, delta(`"content":null,"tool_calls":null,`+
		`"function_call":null,"refusal":null,"reasoning_content":null`), delta(`"content":"Hello"`),
		`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null,"error":null}`), "text Hello"},
	{"usage in each event", chunks(`{"choices":[{"delta":{"content":"Hello"}}],"usage":{"prompt_tokens":7,`+
		`"completion_tokens":1}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,`+
		`"completion_tokens":2}}`), "text Hello\nusage 7 2"},
	{"usage of a choice", chunks(`{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop","usage":` +
		`{"prompt_tokens":7,"completion_tokens":2.0}}]}`), "text Hello\nusage 7 2"},
	{"usage that cannot be", chunks(delta(`"content":"Hello"`), ends(`"stop"`),
		`{"choices":[],"usage":{"prompt_tokens":-7,"completion_tokens":1e40}}`, `{"choices":[],"usage":"many"}`),
		"text Hello"},
	{"plain JSON", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello",` +
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":` +
		`"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, "text Hello\ncall f {}\nusage 7 2"},
	{"plain JSON in lines, without a reason", "{\n  \"choices\": [\n    {\"message\": {\"content\": \"Hello\"}}\n  ]\n}\n",
		"text Hello"},
	{"a line of JSON an event", delta(`"content":"Hel"`) + "\n" + delta(`"content":"lo"`) + "\n" + ends(`"stop"`) + "\n",
		"text Hello"},
	{"content in parts", chunks(delta(`"content":[{"type":"text","text":"Hel"}]`), delta(`"content":[{"type":"text",`+
		`"text":"l"},"o"]`), ends(`"stop"`)), "text Hello"},
	{"Mistral's thoughts", chunks(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]`),
		delta(`"content":[{"type":"text","text":"Hello"}]`), ends(`"stop"`)), "thought Hm.\ntext Hello"},
	{"thoughts of vLLM", chunks(delta(`"reasoning_content":"H"`), delta(`"reasoning":"m."`), delta(`"content":"Hello"`),
		ends(`"stop"`)), "thought Hm.\ntext Hello"},
	{"thoughts twice", chunks(delta(`"reasoning_content":"Hm.","reasoning":"Hm.","reasoning_details":[{}]`),
		delta(`"content":"Hello","reasoning":{"a":1}`), ends(`"stop"`)), "thought Hm.\ntext Hello"},
	{"thoughts in tags, in pieces", chunks(delta(`"content":"<th"`), delta(`"content":"ink>H"`), delta(`"content":"m.</"`),
		delta(`"content":"think>\n\nHel"`), delta(`"content":"lo <think>"`), ends(`"stop"`)),
		"thought Hm.\ntext Hello <think>"},
	{"thoughts in tags, at once", `{"choices":[{"message":{"content":"<think>\nHm.</think>\n\nHello"}}]}`,
		"thought Hm.\ntext Hello"},
	{"thoughts in tags before a call", chunks(delta(`"content":"<think>Hm.</think>\n"`), delta(`"tool_calls":[{"index":0,`+
		`"id":"a","function":{"name":"f","arguments":"{}"}}]`), ends(`"stop"`)), "thought Hm.\ncall f {}"},
	{"a refusal", chunks(delta(`"refusal":"No."`), ends(`"stop"`)), "text No.\nfinish refused"},
	{"a filter", chunks(delta(`"content":"Hel"`), ends(`"content_filter"`)), "text Hel\nfinish refused"},
	{"Mistral's length", chunks(delta(`"content":"Hel"`), ends(`"model_length"`)), "text Hel\nfinish length"},
	{"a length within a call", chunks(
		delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p"}}]`),
		ends(`"length"`)), "text [This answer was cut off within a call of f, which was not made.]\nfinish length"},
	{"a length within a thought", chunks(delta(`"content":"<think>Hm"`), ends(`"length"`)),
		"thought Hm\ntext [This answer was cut off before it was complete.]\nfinish length"},
	{"calls that end with stop", chunks(
		delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`),
		delta(`"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"place\":"}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]`), ends(`"stop"`)), "call f " + oslo},
	{"arguments that are an object", chunks(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":`+
		`{"place": "Oslo"}}}]`), ends(`"tool_calls"`)), "call f " + oslo},
	{"no arguments", chunks(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b",`+
		`"function":{"name":"g","arguments":null}}]`), ends(`"tool_calls"`)), "call f {}\ncall g {}"},
	{"the older call", chunks(delta(`"function_call":{"name":"f","arguments":""}`), delta(`"function_call":{"arguments":`+
		`"{\"place\":"}`), delta(`"function_call":{"arguments":"\"Oslo\"}"}`), ends(`"function_call"`)), "call f " + oslo},
	{"the older call, at once", `{"choices":[{"message":{"content":null,"function_call":{"name":"f","arguments":` +
		`{"place":"Oslo"}}},"finish_reason":"function_call"}]}`, "call f " + oslo},
	{"calls without indices", chunks(delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"place\":"}}]`),
		delta(`"tool_calls":[{"function":{"arguments":"\"Oslo\"}"}}]`), delta(`"tool_calls":[{"id":"b","function":{"name":`+
			`"f","arguments":"{\"place\":\"Rome\"}"}}]`), ends(`"tool_calls"`)), "call f " + oslo + "\ncall f " + rome},
	{"calls without indices and ids", chunks(delta(`"tool_calls":[{"function":{"name":"f","arguments":{"place":"Oslo"}}},`+
		`{"function":{"name":"f","arguments":{"place":"Rome"}}}]`), ends(`"stop"`)),
		"call f " + oslo + "\ncall f " + rome},
	{"Ollama's indices", chunks(delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":\"Oslo\"}"}},{"id":"b","index":0,"function":{"name":"f","arguments":"{\"place\":\"Rome\"}"}}]`),
		ends(`"tool_calls"`)), "call f " + oslo + "\ncall f " + rome},
	{"Gemini's indices and ids", chunks(delta(`"tool_calls":[{"id":"","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":\"Oslo\"}"}}]`), delta(`"tool_calls":[{"id":"","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":\"Rome\"}"}}]`), delta(`"tool_calls":[{"id":"","index":0,"function":{"name":"g","arguments":"{}"}}]`),
		ends(`"stop"`)), "call f " + oslo + "\ncall f " + rome + "\ncall g {}"},
	{"one id for two calls", chunks(delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":\"Oslo\"}"}}]`), delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":\"Rome\"}"}}]`), ends(`"stop"`)), "call f " + oslo + "\ncall f " + rome},
	{"ids and names in each piece", chunks(delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":`+
		`"{\"place\":"}}]`), delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":"\"Oslo\"}"}}]`),
		delta(`"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":""}}]`), ends(`"tool_calls"`)),
		"call f " + oslo},
	{"another choice", chunks(delta(`"content":"Hello"`), `{"choices":[{"index":1,"delta":{"content":"Bye"}}]}`,
		ends(`"stop"`)), "text Hello"},
	{"an error", "data: " + delta(`"content":"Hel"`) + "\n\ndata: {\"error\":{\"message\":\"oh\"}}\n\n", "fault"},
	{"an error that is a text", chunks(`{"error":"oh"}`), "fault"},
	{"an error of vLLM", chunks(`{"object":"error","message":"oh","code":500}`), "fault"},
	{"an error of a choice", chunks(`{"choices":[{"delta":{},"error":{"code":502,"message":"oh"}}]}`), "fault"},
	{"an error of LM Studio", "event: error\ndata: {\"error\":{\"message\":\"oh\"},\"message\":\"oh\"}\n\n", "fault"},
	{"an error of llama.cpp", "data: " + delta(`"content":"Hel"`) + "\n\nerror: {\"code\":500,\"message\":\"oh\"}\n\n",
		"fault"},
	{"an error among lines", "data: " + delta(`"content":"Hel"`) + "\n\n{\"error\":{\"message\":\"oh\"}}\n", "fault"},
	{"an end that is an error", chunks(delta(`"content":"Hel"`), ends(`"error"`)), "fault"},
	{"an end that is an abort", chunks(delta(`"content":"Hel"`), ends(`"abort"`)), "fault"},
	{"a stream that ends early", "data: " + delta(`"content":"Hel"`) + "\n\n", "fault"},
}

// The client understands the answers of servers similar to OpenAI's. The pieces that it shows on the way add up to the
// answer.
func TestAnswersOfOtherServersAreUnderstood(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	c := clients(t, m)[model.FormatOpenAI]
	for _, s := range transcripts {
		m.Says(modeltest.Answer{Raw: s.raw})
		shown := map[string]string{}
		got, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(d model.Delta) {
			shown[string(d.Kind)+d.CallID] += d.Name + d.Text
		})
		f, failed := err.(*model.Fault) //nolint:errorlint // as Client promises it
		if s.want == "fault" {
			if !failed || !f.Again {
				t.Errorf("%s: got %+v, %v, want a fault after which it is asked again", s.name, got, err)
			}
			continue
		}
		isWithheld := failed && f.Kind == model.Content && got.Finish == model.Refused
		if diff := cmp.Diff(s.want, transcriptOf(got)); err != nil && !isWithheld || diff != "" {
			t.Errorf("%s: %v, the answer (-want +got):\n%s", s.name, err, diff)
		}
		if got.Finish == model.Length {
			continue // this answer lost pieces that were shown
		}
		for _, p := range got.Content {
			streamed := shown[string(p.Type)+p.CallID]
			if p.Type == recall.ToolCall {
				p.Text = p.Name + strings.TrimSuffix(p.Input, "{}")
				streamed = strings.TrimSuffix(streamed, "{}")
			}
			if streamed != p.Text {
				t.Errorf("%s: %q was shown of %q", s.name, streamed, p.Text)
			}
		}
	}
}

// transcriptOf writes an answer in the form of the table. The ids of calls must be set, and differ.
func transcriptOf(a model.Answer) string {
	var lines []string
	ids := map[string]bool{"": true}
	for _, p := range a.Content {
		switch {
		case p.Type == recall.Reasoning:
			lines = append(lines, "thought "+p.Text)
		case p.Type == recall.Text:
			lines = append(lines, "text "+p.Text)
		case ids[p.CallID]:
			lines = append(lines, "the id again of "+p.Name)
		default:
			lines = append(lines, "call "+p.Name+" "+p.Input)
		}
		ids[p.CallID] = true
	}
	if a.Finish != model.Stop {
		lines = append(lines, "finish "+a.Finish)
	}
	if a.Usage != (model.Usage{}) {
		lines = append(lines, fmt.Sprint("usage ", a.Usage.Prompt, " ", a.Usage.Completion))
	}
	return strings.Join(lines, "\n")
}
