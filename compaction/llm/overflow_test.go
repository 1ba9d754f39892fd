package llm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall/chat"
)

func TestOverflowIsKnownInEveryProvidersWords(t *testing.T) {
	t.Parallel()
	for _, w := range llmtest.Wordings {
		withProvider(t, w.Name, func(t *testing.T, p *llmtest.Provider) {
			p.Always(llmtest.Overflows(w, 8192, 9000))
			_, err := client(t, p, nil).Complete(t.Context(), ask("hello"))
			o, ok := errors.AsType[*summary.Overflow](err)
			if !ok {
				t.Fatalf("got %v, want an overflow", err)
			}
			if w.HasWindow() && o.Window != 8192 || w.HasSent() && o.Sent != 9000 || !w.HasWindow() && o.Window != 0 ||
				!w.HasSent() && o.Sent != 0 {
				t.Errorf("got a window of %d and %d sent from %s", o.Window, o.Sent, w.Body)
			}
			if n := len(p.Requests()); n != 1 {
				t.Errorf("got %d requests, want 1: sending it again cannot help", n)
			}
		})
	}
}

func TestUnknownWordsWithNumbersAboveTheWindowAreAnOverflow(t *testing.T) {
	t.Parallel()
	for body, overflow := range map[string]bool{
		`{"error":{"message":"Sorry, 9,412 tokens will not go in here."}}`:     true,
		`{"error":"a sequence of 9412 units is more than the engine takes"}`:   true,
		`{"detail":"la taille du contexte demandee est de 9412, trop grande"}`: true,
		`{"detail":"input of 9412 is more than we take"}`:                      true,
		`{"error":"Prompt size 9 412 above cap"}`:                              true,
		`{"error":"the prompt has a bad role in message 12"}`:                  false,
		`{"error":"input refused","request_id":1732250000}`:                    false,
		`{"error":"rate limit: 90000 input tokens per minute"}`:                false,
	} {
		p := llmtest.New(t)
		p.Always(llmtest.Says(400, body))
		_, err := client(t, p, func(c *llm.Config) { c.Window = 8192 }).Complete(t.Context(), ask("hello"))
		o, ok := errors.AsType[*summary.Overflow](err)
		if ok != overflow || ok && (o.Window != 8192 || o.Sent != 9412) {
			t.Errorf("%s: got %v, want an overflow: %v", body, err, overflow)
		}
	}
}

func TestNumbersAboveTheRequestAreAnOverflowOfAnUnknownWindow(t *testing.T) {
	t.Parallel()
	for body, sent := range map[string]int{
		`{"error":{"message":"Requested token count exceeds the model's maximum: 200000 tokens given."}}`: 200_000,
		`{"error":{"message":"The body has 2,990,001 pieces; 131,072 are the most."}}`:                    2_990_001,
		`{"error":{"message":"prompt of 250000 units refused"}}`:                                          250_000,
		`{"error":{"message":"the prompt has a bad role in message 12"}}`:                                 0,
		`{"error":{"message":"temperature must be at most 2"}}`:                                           0,
	} {
		p := llmtest.New(t)
		p.Always(llmtest.Says(400, body))
		_, err := client(t, p, nil).Complete(t.Context(), ask(strings.Repeat("word ", 3000)))
		o, ok := errors.AsType[*summary.Overflow](err)
		if ok != (sent > 0) || ok && (o.Window != 0 || o.Sent != sent) {
			t.Errorf("%s: got %v, want an overflow of %d", body, err, sent)
		}
	}
}

func TestOtherFailuresAreNoOverflow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"too many requests", 429, `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit ` +
			`30000, Used 29000, Requested 3500. Please try again in 5s.","code":"rate_limit_exceeded"}}`},
		{"too many tokens for now", 429, `{"message":"Too many tokens, please wait before trying again."}`},
		{"a quota", 429, `{"error":{"message":"You exceeded your current quota, please check your ` +
			`plan","code":"insufficient_quota"}}`},
		{"overloaded", 529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{"an answer's limit", 400, `{"error":{"message":"max_tokens is too large: 100000. This model supports at most ` +
			`16384 completion tokens, whereas you provided 100000.","param":"max_tokens"}}`},
		{"a wrong key that speaks of context", 401, `{"error":{"message":"maximum context length is 8192 tokens"}}`},
		{"a model that is not there", 404, `{"error":{"message":"model with context length exceeded not found"}}`},
		{"a template", 500, `{"error":{"code":500,"message":"Jinja Exception: System message must be at the ` +
			`beginning","type":"server_error"}}`},
		{"roles", 400, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant"}}`},
		{"what was sent, repeated", 422, `{"detail":[{"loc":["body"],"msg":"field required","input":"the logs say: ` +
			`maximum context length is 8192 tokens"}]}`},
	} {
		withProvider(t, c.name, func(t *testing.T, p *llmtest.Provider) {
			p.Always(llmtest.Says(c.status, c.body))
			_, err := client(t, p, nil).Complete(t.Context(), ask("hello"))
			if o, ok := errors.AsType[*summary.Overflow](err); ok || err == nil {
				t.Errorf("got overflow %v, error %v; want another error", o, err)
			}
		})
	}
}

func TestSilentOverflowIsFound(t *testing.T) {
	t.Parallel()
	// 14,400 words, about 15,600 tokens
	long := strings.Repeat("The deploy of service 17 failed again because the disk was full. ", 1200)
	for _, c := range []struct {
		name     string
		text     string
		read     int
		overflow bool
	}{
		{"Ollama reads its 4,096 and says nothing", long, 4096, true},
		{"it keeps half of its window", long, 2051, true},
		{"it reads a little less than all, and a round number", long, 12288, true},
		{"all is read", long, 15_800, false},
		{"all is read, by a tokenizer with long tokens", long, 14_500, false},
		{"a short text is not looked at", "hello", 1, false},
		{"nothing is reported", long, 0, false},
		{"what is reported is no count of the request", long, 7, false},
		{"spaces are few tokens", strings.Repeat("a"+strings.Repeat(" ", 200), 1000), 2_000, false},
		{"Russian words are words", strings.Repeat("Сервер снова не отвечает после обновления. ", 500), 4_000, false},
		{"Chinese has no spaces", strings.Repeat("服务器在更新之后没有响应。", 500), 3_500, false},
		{"Chinese is cut too", strings.Repeat("服务器在更新之后没有响应。", 1500), 2_048, true},
	} {
		withProvider(t, c.name, func(t *testing.T, p *llmtest.Provider) {
			p.Count = func(llmtest.Asked) int { return c.read }
			reply, err := client(t, p, nil).Complete(t.Context(), ask(c.text))
			o, ok := errors.AsType[*summary.Overflow](err)
			if ok != c.overflow || err != nil && !ok {
				t.Fatalf("got %v, want overflow: %v", err, c.overflow)
			}
			if ok && o.Window != c.read || !ok && reply.PromptTokens != c.read {
				t.Errorf("got %+v, %+v, want %d tokens", o, reply, c.read)
			}
		})
	}
}

func TestAnswerThatEndsBeforeItsFirstWordIsAnOverflow(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	p.Always(llmtest.OutOfLength())
	_, err := client(t, p, nil).Complete(t.Context(), ask("hello"))
	if _, ok := errors.AsType[*summary.Overflow](err); !ok {
		t.Errorf("got %v, want an overflow", err)
	}
}

const testKey = "sk-test-0123456789abcdef"

func ask(text string) summary.Request {
	return summary.Request{Messages: []chat.Message{{Role: "system", Content: "Summarise."},
		{Role: "user", Content: text}}}
}

// client returns a client of the provider without a pause between attempts.
func client(t *testing.T, p *llmtest.Provider, change func(*llm.Config)) *llm.Client {
	t.Helper()
	config := llm.Config{BaseURL: p.BaseURL(), APIKey: testKey, Model: "test-model", HTTP: p.Client(),
		FirstPause: time.Nanosecond}
	if change != nil {
		change(&config)
	}
	c, err := llm.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
