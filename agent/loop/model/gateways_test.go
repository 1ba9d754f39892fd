package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// If a server similar to Anthropic's answers a request for a stream with plain JSON, the answer is the same as from a
// stream.
func TestPlainJSONOfServersLikeAnthropicsIsUnderstood(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	c := clients(t, m)[model.FormatAnthropic]
	const begin = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":`
	const end = `,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":2}}`
	for _, s := range []struct{ name, raw, want string }{
		{"a text", begin + `[{"type":"text","text":"Hello\n<é>"}]` + end, "text Hello\n<é>\nusage 7 2"},
		{"white space before it", " \r\n" + begin + "\n[{\"type\":\"text\",\n\"text\":\"Hello\"}]" + end,
			"text Hello\nusage 7 2"},
		{"all kinds", begin + `[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Wait"},
			{"type":"tool_use","id":"a","name":"f","input":{"place": "Oslo"}},
			{"type":"tool_use","id":"b","name":"g","input":{}},{"type":"tool_use","id":"c","name":"h","input":"{\"x\":1}"}]` +
			`,"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":2}}`,
			"thought Hm.\ntext Wait\ncall f " + oslo + "\ncall g {}\ncall h {\"x\":1}\nusage 7 2"},
		{"no usage", begin + `[{"type":"text","text":"Hello"}],"stop_reason":"max_tokens"}`, "text Hello\nfinish length"},
		{"an error", `{"type":"error","error":{"type":"overloaded_error","message":"oh"}}`, "fault"},
		{"other JSON", `{"choices":[]}`, "fault"},
		{"cut off", begin + `[{"type":"te`, "fault"},
		{"nothing", " ", "fault"},
	} {
		m.Says(modeltest.Answer{Raw: s.raw})
		shown := map[string]string{}
		got, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(d model.Delta) {
			shown[string(d.Kind)+d.CallID] += d.Name + d.Text
		})
		if s.want == "fault" {
			if f, failed := err.(*model.Fault); !failed || !f.Again { //nolint:errorlint // as Client promises it
				t.Errorf("%s: got %+v, %v, want a fault after which it is asked again", s.name, got, err)
			}
			continue
		}
		if diff := cmp.Diff(s.want, transcriptOf(got)); err != nil || diff != "" {
			t.Errorf("%s: %v, the answer (-want +got):\n%s", s.name, err, diff)
		}
		for _, p := range got.Content {
			if p.Type == recall.Text && shown["text"] != p.Text || p.Type == recall.Reasoning && p.Signature != "c2ln" {
				t.Errorf("%s: %v was shown of %+v", s.name, shown, p)
			}
		}
	}
}

// The signature that Gemini attaches to a call is kept byte for byte.
func TestSignaturesOfCallsAreKept(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	c := clients(t, m)[model.FormatOpenAI]
	const call = `"id":"a","function":{"name":"f","arguments":"{}"}`
	for name, raw := range map[string]string{
		"with the call": chunks(delta(`"tool_calls":[{"index":0,`+call+
			`,"extra_content":{"google":{"thought_signature":"Ab+/=="}}}]`), ends(`"tool_calls"`)),
		"after it": chunks(delta(`"tool_calls":[{"index":0,`+call+`}]`), delta(`"tool_calls":[{"index":0,"function":{},`+
			`"extra_content":{"google":{"thought_signature":"Ab+/=="}}}]`), ends(`"tool_calls"`)),
		"not streamed": `{"choices":[{"message":{"tool_calls":[{` + call +
			`,"extra_content":{"google":{"thought_signature":"Ab+/=="}}}]},"finish_reason":"stop"}]}`,
	} {
		m.Says(modeltest.Answer{Raw: raw})
		got, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		if err != nil || len(got.Content) != 1 || got.Content[0].Signature != "Ab+/==" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}
