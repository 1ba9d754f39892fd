package llm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// visit returns a conversation of about 20,000 tokens with one request after the other.
func visit() clip.Evicted {
	var all []recall.Message
	add := func(role recall.Role, p recall.Part) {
		n := len(all) + 1
		all = append(all, recall.Message{Seq: int64(n), Position: n, Role: role, Content: []recall.Part{p},
			Tokens:    tokens.Estimate(p.Text) + 4,
			CreatedAt: time.Date(2026, 3, 1, 9, n, 0, 0, time.UTC)})
	}
	for i := range 20 {
		add(recall.User, recall.Part{Type: recall.Text, Text: fmt.Sprintf("Please read docs/page%02d.md and note what it "+
			"says of order %d.", i, 4400+i)})
		add(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: fmt.Sprint(i), Name: "read_file",
			Input: fmt.Sprintf(`{"path":"docs/page%02d.md"}`, i)})
		add(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: fmt.Sprint(i),
			Text: strings.Repeat(fmt.Sprintf("Page %d tells how the goods were packed, sent and paid for. ", i), 66)})
		add(recall.Assistant, recall.Part{Type: recall.Text, Text: fmt.Sprintf("It says that order %d was paid.", 4400+i)})
	}
	return clip.Evicted{Messages: all, Budget: 1500}
}

// summarised asks the provider for a summary of visit. It fails the test if the summary lacks something that every
// summary must have.
func summarised(t *testing.T, p *llmtest.Provider, window int, change func(*llm.Config)) clip.Summary {
	t.Helper()
	got, err := summary.Summarize(t.Context(), visit(), plan.Defaults(),
		&summary.Model{Summarizer: client(t, p, change), Name: "test-model", Window: window})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"docs/page19.md", "4419", "docs/page10.md"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("%q is lost (%s, %s):\n%s", want, got.How, got.Why, got.Text)
		}
	}
	if n := tokens.Estimate(got.Text); n > 1500 || got.ModelCalls > summary.MaxModelCalls {
		t.Errorf("got %d tokens after %d calls", n, got.ModelCalls)
	}
	return got
}

// If a provider fails in any way, the summary lacks a model's words, but there is a summary.
func TestFailingProviderDoesNotBrickTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault llmtest.Fault
		why   string
	}{
		"429":                       {llmtest.RateLimited(0), "no more requests for now (status 429): Rate limit reached"},
		"500":                       {llmtest.Fails(), "(status 500): The server had an error while"},
		"a broken connection":       {llmtest.Hangup(), "cannot be reached"},
		"garbage":                   {llmtest.Garbage(), "something else than a chat completion"},
		"another shape":             {llmtest.Malformed(), "something else than a chat completion"},
		"no choice":                 {llmtest.NoChoices(), "without a choice"},
		"an empty text":             {llmtest.Empty(), "was empty"},
		"null":                      {llmtest.Null(), "was empty"},
		"an error for a text":       {llmtest.ErrorText(), "an error or an excuse"},
		"a refusal":                 {llmtest.Refuses(), "refused to answer"},
		"an echo":                   {llmtest.Echo(), "repeated the transcript"},
		"a text without end":        {llmtest.TooLong(200_000), "too long"},
		"a proxy's page":            {llmtest.Page(502), "status 502"},
		"a page for an answer":      {llmtest.Page(200), "something else than a chat completion"},
		"a wrong key":               {llmtest.Says(401, "no"), "does not accept the server's key"},
		"no room, whatever is sent": {llmtest.Overflows(llmtest.Wordings[0], 4096, 30_000), "larger than the model's window"},
		"no room for a word":        {llmtest.OutOfLength(), ""},
	} {
		withProvider(t, name, func(t *testing.T, p *llmtest.Provider) {
			p.Always(c.fault)
			if got := summarised(t, p, 0, nil); got.How != clip.Extracted || !strings.Contains(got.Why, c.why) {
				t.Errorf("got %s because of %q, want it extracted because of %q", got.How, got.Why, c.why)
			}
		})
	}
}

func TestProviderThatHangsDoesNotBrickTheAgent(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	release := make(chan struct{})
	defer close(release)
	p.Always(llmtest.Hangs(release))
	got := summarised(t, p, 0, func(c *llm.Config) { c.Timeout = time.Millisecond })
	if got.How != clip.Extracted || !strings.Contains(got.Why, "does not answer within 1ms") {
		t.Errorf("got %s because of %q", got.How, got.Why)
	}
}

func TestAModelThatFailsIsNotAskedAgainForAWhile(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for name, c := range map[string]struct {
		fault llmtest.Fault
		most  int    // requests
		says  string // in the summaries' Why, once it is not asked
	}{
		"a model that hangs":     {llmtest.Hangs(release), 1, "does not answer within 1ms"},
		"a status of 500":        {llmtest.Fails(), 3, "because of its last answer: "},
		"a status of 429":        {llmtest.RateLimited(0), 1, "because of its last answer: "},
		"a long pause":           {llmtest.RateLimited(200), 1, "again for 3m"},
		"a connection that ends": {llmtest.Hangup(), 3, "because of its last answer: "},
		"a page of a proxy":      {llmtest.Page(200), 3, "because of its last answer: "},
		"a wrong key":            {llmtest.Says(401, "no"), 3, "because of its last answer: "},
	} {
		withProvider(t, name, func(t *testing.T, p *llmtest.Provider) {
			p.Always(c.fault)
			client := client(t, p, func(c *llm.Config) {
				c.Attempts = 1
				if strings.Contains(name, "hangs") {
					c.Timeout = time.Millisecond
				}
			})
			summaryFor := func(org db.Org, model string) clip.Summary {
				got, err := summary.Summarize(db.WithOrg(t.Context(), org), visit(), plan.Defaults(),
					&summary.Model{Summarizer: client, Name: model})
				if err != nil {
					t.Error(err)
				}
				return got
			}
			by := func(model string) clip.Summary { return summaryFor(1, model) }
			for n := range 5 {
				got := by("test-model")
				if got.How != clip.Extracted || strings.Contains(got.Why, "is not asked again for") != (n >= c.most) {
					t.Errorf("summary %d: got %s because of %q", n, got.How, got.Why)
				}
				if n >= c.most && !strings.Contains(got.Why, c.says) {
					t.Errorf("it is not asked for %q", got.Why)
				}
				if asked := !strings.Contains(got.Why, "is not asked again for"); asked != (got.ModelCalls > 0) {
					t.Errorf("summary %d: %d calls of a model because of %q", n, got.ModelCalls, got.Why)
				}
			}
			if n := len(p.Requests()); n > c.most { // a request may end before it is sent
				t.Errorf("it was asked %d times, want at most %d", n, c.most)
			}
			p.Always(nil)
			if got := summaryFor(2, "test-model"); strings.Contains(got.Why, "not asked again") {
				t.Errorf("another organization: got %q", got.Why)
			}
			if got := by("another-model"); strings.Contains(got.Why, "not asked again") {
				t.Errorf("another model of the endpoint: got %q", got.Why)
			}
		})
	}
}

// Letta knew the wordings of three providers. It knew neither llama.cpp's, nor that Ollama cuts requests silently.
func TestEveryProvidersOverflowIsGotAround(t *testing.T) {
	t.Parallel()
	for _, w := range llmtest.Wordings {
		withProvider(t, w.Name, func(t *testing.T, p *llmtest.Provider) {
			p.Window, p.Wording = 12_000, w
			if got := summarised(t, p, 0, nil); got.How != clip.Middle {
				t.Errorf("got %s because of %q after %d requests", got.How, got.Why, len(p.Requests()))
			}
		})
	}
	withProvider(t, "Ollama, in silence", func(t *testing.T, p *llmtest.Provider) {
		p.Window, p.Truncate = 8_192, true
		if got := summarised(t, p, 0, nil); got.How != clip.Middle ||
			!strings.Contains(got.Text, "Not read by the model") {
			t.Errorf("got %s because of %q after %d requests", got.How, got.Why, len(p.Requests()))
		}
	})
}

func TestKnownWindowSparesTheOverflow(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	p.Window = 12_000
	if got := summarised(t, p, 12_000, nil); got.How != clip.Middle || len(p.Requests()) > 2 {
		t.Errorf("got %s after %d requests", got.How, len(p.Requests()))
	}
	for i, request := range p.Requests() {
		if request.MaxTokens == 0 || llmtest.Tokens(request.Text())+request.MaxTokens > 12_000 {
			t.Errorf("request %d: %d tokens and %d for the answer do not fit 12,000", i+1, llmtest.Tokens(request.Text()),
				request.MaxTokens)
		}
	}
}
