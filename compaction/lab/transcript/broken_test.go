package transcript_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/recall"
)

// ReadWhole leaves out lines that are broken, and names each. If no fewer are broken than sound, it refuses the file as
// Read does.
func TestBrokenLinesAreNamedAndTheOthersRead(t *testing.T) {
	t.Parallel()
	const user, answer = `{"role":"user","content":"one"}`, `{"role":"assistant","content":"two"}`
	const claude = `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"one"}}`
	for name, c := range map[string]struct {
		lines []string
		said  int
		left  []string
	}{
		"all are sound":       {[]string{user, answer}, 2, nil},
		"the last line ends":  {[]string{user, answer, `{"role":"us`}, 2, []string{"x, line 3: the JSON ends too early"}},
		"a line is no JSON":   {[]string{user, "", "{bad}", answer, user}, 3, []string{"x, line 3: no valid JSON"}},
		"a line is no object": {[]string{user, answer, "7"}, 2, []string{"x, line 3: expected an object"}},
		"a role is unknown": {[]string{user, `{"role":"boss","content":"x"}`, answer}, 2,
			[]string{"x, line 2: role: expected one of"}},
		"two values": {[]string{user, answer, `{"a":1} {"b":`}, 2, []string{"x, line 3: the line has more than one value"}},
		"Claude Code": {[]string{claude, `{"type":"user","uuid":"2"`,
			`{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"user","content":"three"}}`}, 2,
			[]string{"x, line 2: the JSON ends too early"}},
		"Codex": {[]string{`{"type":"session_meta","payload":{"id":"s"}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":"one"}}`,
			`{"type":"response_item","payload":{"type":"function_call","arguments":"{}"}}`, `{"type":"respo`}, 1,
			[]string{"x, line 4: the JSON ends too early", "x, line 3: a call has a call_id and a name"}},
		"a data set": {[]string{`{"messages":[` + user + `]}`, `{"nothing":1}`}, 1,
			[]string{"x, line 2: no session is known"}},
		"as many broken":  {[]string{user, "{bad}"}, 0, []string{"x, line 2: no valid JSON"}},
		"no line is JSON": {[]string{"hello", "there"}, 0, []string{"x, line 1: no valid JSON"}},
	} {
		text := strings.Join(c.lines, "\n")
		all, left, err := transcript.ReadWhole("x", strings.NewReader(text))
		if c.said == 0 {
			if err == nil || !strings.HasPrefix(err.Error(), c.left[0]) {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if err != nil || len(all) != 1 || len(all[0].Drafts) != c.said || len(left) != len(c.left) {
			t.Errorf("%s: got %+v, %v, %v", name, all, left, err)
			continue
		}
		for i, want := range c.left {
			if !strings.HasPrefix(left[i].Error(), want) {
				t.Errorf("%s: got %q, want %q", name, left[i], want)
			}
		}
		if _, err := transcript.Read("x", strings.NewReader(text)); (err == nil) != (len(c.left) == 0) {
			t.Errorf("%s: Read returns %v", name, err)
		}
	}
}

// read reads a file of testdata.
func read(t *testing.T, text string) transcript.Transcript {
	t.Helper()
	all, err := transcript.Read("x", strings.NewReader(text))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// Of a rollout of Codex, the results that failed are marked, counts are read once, and what is left out is counted.
func TestARolloutOfCodexIsReadWhole(t *testing.T) {
	t.Parallel()
	r := read(t, file(t, "testdata/codex.jsonl"))
	failed := 0
	for _, d := range r.Drafts {
		for _, p := range d.Content {
			if p.Type == recall.ToolReturn && p.IsError {
				failed++
			}
		}
	}
	if failed != 2 || r.Session != "0199aa00-1111-7000-8000-00000000c0de" || r.Drafts[0].CreatedAt == nil {
		t.Errorf("%d failed: %+v", failed, r)
	}
	prompts := []transcript.Prompt{{Answer: 1, Tokens: 900, Model: "some-model"}, {Answer: 4, Tokens: 1000,
		Model: "some-model"}}
	if diff := cmp.Diff(prompts, r.Prompts); diff != "" {
		t.Errorf("the prompts (-want +got): %s", diff)
	}
	want := transcript.Usage{Answers: 2, Prompt: 1900, Read: 900}
	if r.Counted == nil || *r.Counted != want {
		t.Errorf("counted %+v, want %+v", r.Counted, want)
	}
	left := map[string]int{"user_message": 1, "turn_context": 1, "web_search_call": 1, "compacted": 1, "abandoned": 2}
	if diff := cmp.Diff(left, r.LeftOut); diff != "" {
		t.Errorf("left out (-want +got): %s", diff)
	}
}

// A turn that was rolled back begins with what the user said, not with what Codex wrote for the user.
func TestRolledBackTurnsOfCodexAreLeftOut(t *testing.T) {
	t.Parallel()
	said := func(role, text string) string {
		return `{"timestamp":"2026-01-05T08:00:00Z","type":"response_item","payload":{"type":"message","role":"` + role +
			`","content":[{"type":"input_text","text":"` + text + `"}]}}` + "\n"
	}
	const tag = "<turn_aborted>"
	session := said("user", tag) + said("user", "one") + said("assistant", "first") +
		said("user", "two") + said("user", tag) + said("user", "three") + said("assistant", "third")
	for turns, want := range []string{tag + " one first two " + tag + " three third last",
		tag + " one first two " + tag + " last", tag + " one first last", tag + " last"} {
		r := read(t, session+fmt.Sprintf(`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":%d}}`,
			turns)+"\n"+said("user", "last"))
		var got []string
		for _, d := range r.Drafts {
			got = append(got, d.Content[0].Text)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%d turns: got %q, want %q", turns, got, want)
		}
	}
}

// Calls of one answer of OpenHands have its id as their step, results that failed are marked, and usage is read.
func TestEventsOfOpenHandsAreReadWhole(t *testing.T) {
	t.Parallel()
	r := read(t, file(t, "testdata/openhands.json"))
	if len(r.Prompts) != 1 || r.Prompts[0] != (transcript.Prompt{Answer: 1, Tokens: 700}) ||
		!r.Drafts[2].Content[0].IsError || r.Drafts[0].CreatedAt == nil {
		t.Errorf("got %+v", r)
	}
	left := map[string]int{"recall": 1, "observations recall": 1, "observations agent_state_changed": 1}
	if diff := cmp.Diff(left, r.LeftOut); diff != "" {
		t.Errorf("left out (-want +got): %s", diff)
	}
	r = read(t, file(t, "testdata/openhands-sdk.jsonl"))
	steps := []string{}
	for _, d := range r.Drafts {
		if d.StepID != nil {
			steps = append(steps, *d.StepID)
		}
	}
	if diff := cmp.Diff([]string{"r1", "r1", "r2", "r3"}, steps); diff != "" {
		t.Errorf("steps (-want +got): %s", diff)
	}
	if r.LeftOut["ConversationStateUpdateEvent"] != 1 {
		t.Errorf("left out: %v", r.LeftOut)
	}
}

// A speaker that ShareGPT's format does not have is refused with its line.
func TestAnUnknownSpeakerIsRefused(t *testing.T) {
	t.Parallel()
	_, err := transcript.Read("x", strings.NewReader(`[{"conversations":[{"from":"human","value":"a"},`+"\n"+
		`{"from":"king","value":"b"}]}]`))
	var at *transcript.Error
	if !errors.As(err, &at) || at.Line != 2 || !strings.Contains(err.Error(), "king") {
		t.Errorf("got %v", err)
	}
}

// A conversation in ShareGPT's format may have role and content, as a chat API has them: its calls are read as such,
// and its results answer them.
func TestShareGPTWithRolesIsReadWhole(t *testing.T) {
	t.Parallel()
	call := `{\"name\": \"look\", \"arguments\": {\"at\": \"door\"}}`
	for name, said := range map[string]string{
		"names of ShareGPT": `{"role":"human","content":"Look."},{"role":"function_call","content":"` + call + `"},
			{"role":"observation","content":"It is open."},{"role":"gpt","content":"It is open."}`,
		"some names of ShareGPT": `{"role":"user","content":"Look."},{"role":"function_call","content":"` + call + `"},
			{"role":"observation","content":"It is open."},{"role":"assistant","content":"It is open."}`,
		"calls in tags": `{"role":"user","content":"Look."},
			{"role":"assistant","content":"<tool_call>` + call + `</tool_call>"},
			{"role":"tool","content":"<tool_response>It is open.</tool_response>"},
			{"role":"assistant","content":"It is open."}`,
	} {
		r := read(t, `[{"conversations":[`+said+`]}]`)
		if r.Format != transcript.ShareGPT || len(r.Drafts) != 4 || r.Drafts[1].Content[0].Name != "look" ||
			r.Drafts[2].Content[0].CallID != r.Drafts[1].Content[0].CallID || r.Drafts[2].Content[0].Text != "It is open." {
			t.Errorf("%s: got %s", name, told(r))
		}
	}
	r := read(t, `[{"role":"user","content":"Explain <tool_call>."},
		{"role":"assistant","content":"<tool_call>x</tool_call>","tool_calls":[{"id":"c","type":"function",
		"function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"Open."}]`)
	if r.Format != transcript.Chat || len(r.Drafts) != 3 {
		t.Errorf("got %s", told(r))
	}
}

// A provider's count is imported with the model that it is of: without it, it would tell nothing of a model.
func TestACountIsImportedWithItsModel(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Claude Code": `{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"assistant","id":"m","model":"large",
"content":"two","usage":{"input_tokens":700}}}`,
		"a chat": `[{"role":"user","content":"one"},
{"role":"assistant","content":"two","model":"large","usage":{"prompt_tokens":700}}]`,
		"Codex": `{"type":"session_meta","payload":{"id":"s"}}
{"type":"turn_context","payload":{"model":"large"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":700}}}}`,
		"Pi": `{"type":"session","id":"s"}
{"type":"message","id":"1","message":{"role":"user","content":"one"}}
{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","model":"large",
"content":[{"type":"text","text":"two"}],"usage":{"input":700}}}`,
	} {
		r := read(t, text)
		messages, _ := r.Wire()
		if len(messages) != 2 || !strings.Contains(string(messages[1].JSON), `"model":"large"`) ||
			!strings.Contains(string(messages[1].JSON), `"usage":{"prompt_tokens":700}`) {
			t.Errorf("%s: %d messages, the answer is sent as %s", name, len(messages), messages[len(messages)-1].JSON)
		}
	}
	r := read(t, strings.ReplaceAll(file(t, "testdata/openhands.json"), `"model_response":{`,
		`"model_response":{"model":"large",`))
	if want := (transcript.Prompt{Answer: 1, Tokens: 700, Model: "large"}); len(r.Prompts) != 1 || r.Prompts[0] != want {
		t.Errorf("OpenHands: %+v", r.Prompts)
	}
}
