package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
)

func TestModelsAreListedWithTheirWindows(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	type model struct {
		Handle, Name, Model string
		EndpointType        string `json:"model_endpoint_type"`
		ProviderType        string `json:"provider_type"`
		Window              int    `json:"context_window"`
		MaxWindow           int    `json:"max_context_window"`
	}
	list := func(query string) (models []model) {
		t.Helper()
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/models/?"+query, "")), &models); err != nil {
			t.Fatal(err)
		}
		return models
	}
	if len(list("")) == 0 || len(list("provider_category=byok")) != 0 {
		t.Errorf("%d models are listed, %d of them the operator's own", len(list("")), len(list("provider_category=byok")))
	}
	for _, m := range list("") {
		a := fields(t, c.must("POST", "/v1/agents", `{"model":"`+m.Handle+`"}`))
		if config := a["llm_config"].(map[string]any); config["context_window"] != float64(m.Window) ||
			m.Window != m.MaxWindow || m.Name != m.Model || m.Handle != m.ProviderType+"/"+m.Name || m.EndpointType == "" {
			t.Errorf("model %+v, agent %v", m, config)
		}
	}
	all := list("")
	if !slices.Equal(list("limit=2&after="+all[0].Handle), all[1:3]) || list("order=desc")[0] != all[len(all)-1] {
		t.Errorf("got the page %+v of %+v", list("limit=2&after="+all[0].Handle), all)
	}
	for _, m := range list("provider_type=anthropic") {
		if !strings.HasPrefix(m.Handle, "anthropic/") {
			t.Errorf("of anthropic: %+v", m)
		}
	}
}

// The operator's own model is listed, and an agent with it has the listed window.
func TestTheConfiguredModelIsListed(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]float64{0: 32768, 24_000: 24_000} {
		c := newServerClient(t)
		p := llmtest.New(t)
		p.Window = window
		models, err := agenttest.Models(p, patience)
		if err != nil {
			t.Fatal(err)
		}
		c.own().Agents.Compaction.Models = models
		var list []map[string]any
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/models/", "")), &list); err != nil {
			t.Fatal(err)
		}
		if got := list[0]; got["handle"] != "openai/summariser" || got["context_window"] != want {
			t.Errorf("with a window of %d the first model is %v", window, got)
		}
		a := fields(t, c.must("POST", "/v1/agents", `{"model":"openai/summariser"}`))
		if got := a["llm_config"].(map[string]any)["context_window"]; a["model"] != "openai/summariser" || got != want {
			t.Errorf("an agent of it has the window %v, want %v", got, want)
		}
	}
}

func TestWhatIsNotKnownOfAModelIsSaid(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	a := fields(t, c.must("POST", "/v1/agents", `{"model":"openai/of-ones-own","embedding":"loci/words"}`))
	if window := a["llm_config"].(map[string]any)["context_window"]; window != 32768.0 {
		t.Errorf("an unknown window is %v", window)
	}
	target := "/v1/agents/" + a["id"].(string)
	c.greet(a["id"].(string), "default")
	prompt, overview := fields(t, c.must("GET", target+"/prompt", "")), fields(t, c.must("GET", target+"/context", ""))
	stored := fields(t, c.must("GET", target+"/context?at_seq=100", ""))
	for _, window := range []any{prompt["context_window"], stored["context_window"], overview["context_window_size_max"]} {
		if window != 32768.0 {
			t.Errorf("an unknown window of a prompt is %v", window)
		}
	}
	folder := fields(t, c.must("POST", "/v1/folders", `{"name":"f"}`))
	for _, config := range []any{a["embedding_config"], folder["embedding_config"]} {
		if c := config.(map[string]any); c["embedding_dim"] != 0.0 || c["embedding_model"] != "words" ||
			c["embedding_endpoint_type"] != "openai" {
			t.Errorf("without a model the embedding is %v", c)
		}
	}
}

// While a model's endpoint does not answer, the configured model is listed by name, with the problem.
func TestTheEmbeddingModelIsListedWhileItsEndpointFails(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	fake := embedtest.New(t, 8)
	encoder := fake.Endpoint(t)
	encoder.Configured = endpoint.Space{Model: "fake"}
	store, err := files.New(c.pool, files.Options{Endpoint: encoder, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c.own().Files = store
	listed := func(label string, dimension float64, problem any) {
		t.Helper()
		var list []map[string]any
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/models/embedding", "")), &list); err != nil {
			t.Fatal(err)
		}
		if m := list[0]; len(list) != 1 || m["handle"] != "openai/fake" || m["embedding_dim"] != dimension ||
			m["problem"] != problem {
			t.Errorf("%s the list is %v, want the dimension %v and the problem %v", label, list, dimension, problem)
		}
	}
	const meanwhile = ": texts wait for their vectors, and search ranks by words."
	listed("before the endpoint answers", 0, "The embeddings endpoint has given no vectors yet"+meanwhile)
	fake.Use(t, c.pool, encoder)
	listed("once it answers", 8, nil)
	fake.Down.Store(true)
	ask := func() {
		permit, _ := encoder.Await(t.Context())
		defer permit.End()
		_, _, _ = permit.Embed(t.Context(), []embed.Item{{ID: 1, Text: "text"}})
	}
	ask()
	listed("while it fails", 8, "The embeddings endpoint fails"+meanwhile)
	fake.Down.Store(false)
	ask()
	listed("when it answers again", 8, nil)
}

// The endpoint's models are listed after the operator's own model, each once, without models that do not chat.
func TestTheEndpointsModelsAreListed(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	p := llmtest.New(t)
	p.SetModels("qwen3:8b", "summariser", "gpt-4o", "text-embedding-3-small", "acme/large")
	models, err := agenttest.Models(p, patience)
	if err != nil {
		t.Fatal(err)
	}
	c.own().Agents.Compaction.Models = models
	var list []struct{ Handle, Name string }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/models/", "")), &list); err != nil {
		t.Fatal(err)
	}
	var handles []string
	for _, m := range list {
		handles = append(handles, m.Handle)
	}
	want := []string{"openai/summariser", "openai/acme/large", "openai/gpt-4o", "openai/qwen3:8b", "openai/gpt-5"}
	if len(handles) < len(want) || !slices.Equal(handles[:len(want)], want) {
		t.Errorf("got %q, want %q first", handles, want)
	}
	if slices.Sort(handles); len(slices.Compact(handles)) != len(list) {
		t.Errorf("a model is listed twice: %q", handles)
	}
	agent := c.made("/v1/agents", `{"model":"openai/acme/large"}`)
	c.greet(agent, "default")
	contains(t, "the request of a model whose name has a slash", c.must("GET", "/v1/agents/"+agent+"/prompt", ""),
		`"request":{"model":"acme/large"`)
}
