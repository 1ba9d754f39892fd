package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/embed/embedtest"
)

// Organizations share a server with the operator's endpoints. The endpoints' messages, addresses and settings are in
// the log, but in no answer.
func (p *pair) endpointsAreNotSeen(t *testing.T) {
	const secret = "sk-hidden-7f3a at gpu-7.internal.example"
	server := p.programs[0]
	words := hostOf(t, p.words.URL)
	for _, c := range []struct {
		name   string
		status int
		told   string // what the summary tells the organization
		logged string
		refuse bool // refuses all texts except single words
	}{
		{"too large a request", 413, "larger than the model's window", secret, true},
		{"a key that is not accepted", 401, "does not accept the server's key (status 401)", "_API_KEY", false},
		{"an unknown model", 404, "does not know the model (status 404)", secret, false},
		{"a failure", 503, "fails (status 503)", secret, false},
		{"a refused request", 400, "refuses the request (status 400)", secret, false},
	} {
		answer := embedtest.Answer(c.status, `{"error":{"message":"`+secret+`"}}`)
		fault := embedtest.Fault(func(w http.ResponseWriter, r *http.Request, texts []string) bool {
			spared := c.refuse && !strings.Contains(strings.Join(texts, " "), " ")
			return !spared && answer(w, r, texts)
		})
		folder := call[identified](server, "POST", "/v1/folders/", map[string]any{"name": c.name}).ID
		p.words.Fault.Store(nil)
		p.model.Always(nil)
		call[stored](server, "POST", "/v1/folders/"+folder+"/upload", fileForm(t, "before.txt", []byte("It works.")))
		server.await(folder)
		began := len(server.log.String())
		p.words.Fault.Store(&fault)
		p.model.Always(llmtest.Says(c.status, `{"error":{"message":"`+secret+`"}}`))
		model := fmt.Sprintf("fake/model-%d", c.status) // a model that failed is not asked for a while
		agent := server.crowded(map[string]any{"model": model})
		archive := call[identified](server, "POST", "/v1/archives/", map[string]any{"name": "a"}).ID
		answers := server.everythingOf(agent, folder, archive, c.refuse)
		for source, text := range answers {
			for _, hidden := range []string{"sk-hidden", "gpu-7", words, p.at, "LOCI_"} {
				if strings.Contains(text, hidden) {
					t.Errorf("%s: %s tells %q:\n%s", c.name, source, hidden, text)
				}
			}
		}
		if !strings.Contains(answers["compactions"], c.told) {
			t.Errorf("%s: the compactions do not say %q:\n%s", c.name, c.told, answers["compactions"])
		}
		server.log.await(t, c.name+": the log has what both endpoints said", func(log string) bool {
			return hasLine(log[began:], "model", c.logged) && hasLine(log[began:], "embedding", c.logged)
		})
		if log := server.log.String()[began:]; !c.refuse && (!hasLine(log, "at "+words) || !hasLine(log, "at "+p.at)) {
			t.Errorf("%s: the log does not name the endpoints:\n%s", c.name, log)
		}
		p.words.Fault.Store(nil)
		server.hasNoTextsThatWait(agent, folder, archive)
	}
}

// hasNoTextsThatWait waits until all texts of a case have vectors or are refused. A failing endpoint is asked seldom.
// Otherwise, it would be asked for these texts before those of the next case.
func (p *program) hasNoTextsThatWait(agent, folder, archive string) {
	p.t.Helper()
	type waiting struct {
		Vectors struct{ Pending int } `json:"embedding_status"`
	}
	eventually(p.t, "no text waits for its vector", func() bool {
		left := call[waiting](p, "GET", "/v1/archives/"+archive, nil).Vectors.Pending
		for _, c := range call[[]waiting](p, "GET", "/v1/conversations/?agent_id="+agent, nil) {
			left += c.Vectors.Pending
		}
		return left == 0
	})
	p.await(folder)
}

// everythingOf uses all memories, while their vectors wait or are refused. It returns everything that an organization
// can read about them, by source.
func (p *program) everythingOf(agent, folder, archive string, refused bool) map[string]string {
	p.t.Helper()
	conversation := call[identified](p, "POST", "/v1/conversations/?agent_id="+agent, map[string]any{}).ID
	call[any](p, "POST", "/v1/agents/"+agent+"/messages/capture", map[string]any{"conversation_id": conversation,
		"messages": []map[string]any{{"role": "user", "content": "A message of its own."}}})
	p.send("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, nil)
	call[any](p, "POST", "/v1/archives/"+archive+"/passages", map[string]any{"text": "A passage of its own."})
	call[stored](p, "POST", "/v1/folders/"+folder+"/upload", fileForm(p.t, "after.txt", []byte("It fails now.")))
	p.fits(agent)
	answers := map[string]string{}
	read := func(source, method, path string, body any) string {
		_, answer := p.send(method, path, body)
		answers[source] = string(answer)
		return answers[source]
	}
	reason := regexp.MustCompile(`"(error|error_message)":"[^"]*(wait|no vector)`)
	eventually(p.t, "files, passages or messages say why they lack vectors", func() bool {
		n := 0
		for source, path := range map[string]string{"files": "/v1/folders/" + folder + "/files",
			"archive": "/v1/archives/" + archive, "conversation": "/v1/conversations/" + conversation} {
			if reason.MatchString(read(source, "GET", path, nil)) {
				n++
			}
		}
		return n == 3 || n > 0 && !refused // while the endpoint fails, it is asked for few texts
	})
	read("compactions", "GET", "/v1/agents/"+agent+"/compactions", nil)
	read("summarize", "POST", "/v1/agents/"+agent+"/summarize", map[string]any{
		"compaction_settings": map[string]any{"mode": plan.All}})
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
	return answers
}

// hasLine reports whether a line of a log contains all of some words.
func hasLine(log string, words ...string) bool {
	for line := range strings.Lines(log) {
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
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		t.Fatalf("%q has no host (%v)", address, err)
	}
	return parsed.Host
}
