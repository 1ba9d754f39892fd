package capture_test

import (
	"slices"
	"testing"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/capture"
)

const answered = `"response":{"choices":[{"message":{"role":"assistant","content":"b","tool_calls":[
	{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
	"usage":{"prompt_tokens":77,"completion_tokens":5}}`

// A step has the model's answer and the messages that follow it. Its otid is that of the answer; the others have it
// with a number, unless they have their own.
func TestMessagesOfAStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       []string
		stores     bool
	}{
		{"an answer and what follows", `{"otid":"o",` + answered + `,"messages":[{"role":"user","content":"c"},
			{"role":"user","content":"d","otid":"own"},{"role":"user","content":"e"}]}`,
			[]string{"assistant text=b tool_call:x (o)", "user text=c (o:1)", "user text=d (own)", "user text=e (o:3)"}, true},
		{"an answer alone", `{` + answered + `}`, []string{"assistant text=b tool_call:x"}, true},
		{"an input alone", `{"input":"c"}`, []string{"user text=c"}, true},
		{"approvals alone", `{"approvals":[{"tool_call_id":"c","approve":true}]}`, nil, false},
		{"a refusal alone", `{"refused":{"status":400,"message":"m"}}`, nil, false},
	} {
		b, err := capture.ReadStep(spooled(t, c.body), time.UTC)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if b.Stores != c.stores {
			t.Errorf("%s: it stores messages: %v, want %v", c.name, b.Stores, c.stores)
		}
		if !c.stores {
			continue
		}
		if got, err := drafts(b); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestStepsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, place string }{
		{"nothing", `{}`, "messages"},
		{"no messages", `{"messages":[]}`, "messages"},
		{"a format that is unknown", `{"input":"a","format":"xml"}`, "format"},
		{"a purpose that is unknown", `{"purpose":"nap",` + answered + `}`, "purpose"},
		{"a silent turn without an answer", `{"purpose":"flush","input":"a"}`, "response"},
		{"a silent turn with messages", `{"purpose":"flush",` + answered + `,"messages":[{"role":"user","content":"a"}]}`,
			"messages"},
		{"an approval that does not say which", `{"approvals":[{"tool_call_id":"c"}]}`, "approvals[0].approve"},
		{"an approval of no call", `{"approvals":[{"approve":true}]}`, "approvals[0].tool_call_id"},
		{"a refusal beside an answer", `{"refused":{"status":400,"message":"m"},` + answered + `}`, "refused"},
		{"a refusal beside approvals", `{"refused":{"status":400,"message":"m"},
			"approvals":[{"tool_call_id":"c","approve":true}]}`, "refused"},
		{"an answer without a text and a call", `{"response":{"choices":[{"message":{"role":"assistant","content":""},
			"finish_reason":"stop"}]}}`, "response"},
	} {
		b, err := capture.ReadStep(spooled(t, c.body), time.UTC)
		if err == nil {
			_, err = drafts(b)
		}
		refusedAt(t, c.name, err, c.place)
	}
}

// The calls of an answer whose ids are missing or repeat get ids of their own. If the step has an otid, a repeated step
// gets the same ids.
func TestCallsOfAStepHaveIDs(t *testing.T) {
	t.Parallel()
	id := func(otid string) string {
		call := `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}`
		b, err := capture.ReadStep(spooled(t, `{"otid":"`+otid+`","response":{"choices":[{"message":{"role":"assistant",
			"tool_calls":[`+call+`,`+call+`]},"finish_reason":"tool_calls"}]}}`), time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		for d, err := range b.Drafts() {
			if err != nil {
				t.Fatal(err)
			}
			return d.Content[1].CallID
		}
		return ""
	}
	if a, again := id("a"), id("a"); a != again || a == "x" || len(a) < 20 {
		t.Errorf("the same step has the calls %s and %s", a, again)
	}
	first, second := id(""), id("")
	if id("a") == id("b") || first == second {
		t.Error("different steps have calls with the same id")
	}
}

// A provider's count is of the prompt before the answer. If an earlier request stored the answer, the count was used.
func TestTheCountedPromptOfAStep(t *testing.T) {
	t.Parallel()
	b, err := capture.ReadStep(spooled(t, `{`+answered+`,"messages":[{"role":"user","content":"c"}],"accept":"flush",
		"pending":"answer","format":"anthropic"}`), time.UTC)
	if err == nil {
		_, err = drafts(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.PromptTokens != 77 || !b.Step.Answer || !b.Step.Accepts || !b.Step.AnswerPending ||
		b.Step.Format != "anthropic" {
		t.Errorf("got %d tokens, and %+v", b.PromptTokens, b.Step)
	}
	appended := []recall.Appended{{Position: 10}, {Position: 11}}
	if got := b.PromptPosition(appended); got != 9 || b.Reported(appended) {
		t.Errorf("the prompt ended at %d, reported before: %v", got, b.Reported(appended))
	}
	appended[0].Repeated = true
	if !b.Reported(appended) {
		t.Error("a repeated answer does not count as reported")
	}
	without, err := capture.ReadStep(spooled(t, `{"input":"c"}`), time.UTC)
	if err == nil {
		_, err = drafts(without)
	}
	if err != nil || without.PromptPosition(appended) != 11 || without.Reported(appended) {
		t.Errorf("without an answer: %v, the prompt ended at %d", err, without.PromptPosition(appended))
	}
}

// The counted prompt is that before the model's answer, also if other answers follow in the messages.
func TestTheCountedPromptIsThatOfTheResponse(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[{"role":"user","content":"c"},{"role":"assistant","content":"d"}]`
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"a step", `{` + answered + `,` + messages + `}`, 9},
		{"a step without an answer", `{` + messages + `}`, 10},
	} {
		b, err := capture.ReadStep(spooled(t, c.body), time.UTC)
		if err == nil {
			_, err = drafts(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		appended := []recall.Appended{{Position: 10}, {Position: 11}, {Position: 12}}
		if got := b.PromptPosition(appended); got != c.want {
			t.Errorf("%s: the prompt ended at %d, want %d", c.name, got, c.want)
		}
	}
}

// A usage that cannot be is left out with a warning; the answer is kept.
func TestAnImpossibleUsageIsIgnored(t *testing.T) {
	t.Parallel()
	body := spooled(t, `{"input":"c","usage":{"prompt_tokens":-5}}`)
	b, err := capture.ReadStep(body, time.UTC)
	if err != nil || b.PromptTokens != 0 {
		t.Errorf("got %+v, %v", b, err)
	}
	if got, err := drafts(b); err != nil || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}
