package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
)

// Organizations share a server whose endpoints are the operator's: what those say, where they are and how they are set
// is in the log, and in no answer.
func TestOrganizationsDoNotSeeTheOperatorsEndpoints(t *testing.T) {
	t.Parallel()
	const secret = "sk-hidden-7f3a at gpu-7.internal.example"
	for name, c := range map[string]struct {
		status int
		told   string // to the organization, of the summary
		logged string
		refuse bool // the texts, but for single words
	}{
		"a key that is not accepted": {401, "does not accept the server's key (status 401)", "_API_KEY", false},
		"an unknown model":           {404, "does not know the model (status 404)", secret, false},
		"a failure":                  {503, "fails (status 503)", secret, false},
		"a refused request":          {400, "refuses the request (status 400)", secret, false},
		"too large a request":        {413, "larger than the model's window", secret, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := embedtest.Answer(c.status, `{"error":{"message":"`+secret+`"}}`)
			fault := embedtest.Fault(func(w http.ResponseWriter, r *http.Request, texts []string) bool {
				spared := c.refuse && !strings.Contains(strings.Join(texts, " "), " ")
				return !spared && answer(w, r, texts)
			})
			words, model := embedtest.New(t, 8), llmtest.New(t)
			model.Always(llmtest.Says(c.status, `{"error":{"message":"`+secret+`"}}`))
			p := serve(t, "--database-url="+dbtest.OwnerURL(t), "--llm-base-url="+model.BaseURL(), "--llm-model=m",
				"--embedding-base-url="+words.URL+"/v1", "--embedding-model=e", "--log-level=warn")
			folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
			call[stored](p, "POST", "/v1/folders/"+folder+"/upload", fileForm(t, "before.txt", []byte("It works.")))
			p.await(folder)
			words.Fault.Store(&fault)
			seen := p.everythingOf(folder, c.refuse)
			for what, text := range seen {
				for _, hidden := range []string{"sk-hidden", "gpu-7", hostOf(t, words.URL), hostOf(t, model.URL), "LOCI_"} {
					if strings.Contains(text, hidden) {
						t.Errorf("%s tells %q:\n%s", what, hidden, text)
					}
				}
			}
			if !strings.Contains(seen["compactions"], c.told) {
				t.Errorf("the compactions do not say %q:\n%s", c.told, seen["compactions"])
			}
			embedtest.Eventually(t, "the log has what both endpoints said", func() bool {
				return p.logs("model", c.logged) && p.logs("embedding", c.logged)
			})
			if !c.refuse && (!p.logs("at "+hostOf(t, words.URL)) || !p.logs("at "+hostOf(t, model.URL))) {
				t.Errorf("the log does not name the endpoints:\n%s", p.log)
			}
		})
	}
}

// everythingOf uses all memories, of which the vectors wait or are refused, and returns what an organization can read
// of it, by where it reads it.
func (p *program) everythingOf(folder string, refused bool) map[string]string {
	p.t.Helper()
	agent := p.crowded(nil)
	conversation := call[identified](p, "POST", "/v1/conversations/?agent_id="+agent, map[string]any{}).ID
	call[any](p, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"conversation_id": conversation,
		"messages": []map[string]any{{"role": "user", "content": "A message of its own."}}})
	p.send("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, nil)
	archive := call[identified](p, "POST", "/v1/archives/", map[string]any{"name": "a"}).ID
	call[any](p, "POST", "/v1/archives/"+archive+"/passages", map[string]any{"text": "A passage of its own."})
	call[stored](p, "POST", "/v1/folders/"+folder+"/upload", fileForm(p.t, "after.txt", []byte("It fails now.")))
	p.fits(agent)
	seen := map[string]string{}
	read := func(what, method, path string, body any) string {
		_, answer := p.send(method, path, body)
		seen[what] = string(answer)
		return seen[what]
	}
	why := regexp.MustCompile(`"(error|error_message)":"[^"]*(wait|refuse)`)
	embedtest.Eventually(p.t, "files, passages or messages say why they lack vectors", func() bool {
		n := 0
		for what, path := range map[string]string{"files": "/v1/folders/" + folder + "/files",
			"archive": "/v1/archives/" + archive, "conversation": "/v1/conversations/" + conversation} {
			if why.MatchString(read(what, "GET", path, nil)) {
				n++
			}
		}
		return n == 3 || n > 0 && !refused // while the endpoint fails, few ask it
	})
	read("compactions", "GET", "/v1/agents/"+agent+"/compactions", nil)
	read("summarize", "POST", "/v1/agents/"+agent+"/summarize", map[string]any{
		"compaction_settings": map[string]any{"mode": compaction.All}})
	read("events", "GET", "/v1/agents/"+agent+"/events", nil)
	read("messages", "GET", "/v1/agents/"+agent+"/messages", nil)
	read("agent", "GET", "/v1/agents/"+agent, nil)
	read("folder", "GET", "/v1/folders/"+folder, nil)
	read("prompt", "GET", "/v1/agents/"+agent+"/prompt?format=openai", nil)
	read("ready", "GET", "/v1/ready/", nil)
	read("models", "GET", "/v1/models/embedding", nil)
	for tool, args := range map[string]map[string]any{
		"semantic_search_files":  {"query": "what fails"},
		"conversation_search":    {"query": "plan"},
		"archival_memory_search": {"query": "passage"},
		"list_files":             {},
	} {
		read(tool, "POST", "/v1/agents/"+agent+"/tools/"+tool+"/run", map[string]any{"args": args})
	}
	return seen
}

// logs reports whether a line of the log has all of some words.
func (p *program) logs(words ...string) bool {
	for line := range strings.Lines(p.log.String()) {
		has := 0
		for _, word := range words {
			if strings.Contains(line, word) {
				has++
			}
		}
		if has == len(words) {
			return true
		}
	}
	return false
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		t.Fatalf("%q has no host (%v)", address, err)
	}
	return at.Host
}
