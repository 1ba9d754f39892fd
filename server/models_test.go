package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestModelsAreListedWithTheirWindows(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
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
	for _, m := range list("provider_type=anthropic") {
		if !strings.HasPrefix(m.Handle, "anthropic/") {
			t.Errorf("of anthropic: %+v", m)
		}
	}
}

func TestWhatIsNotKnownOfAModelIsSaid(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
	a := fields(t, c.must("POST", "/v1/agents", `{"model":"openai/of-ones-own","embedding":"loci/words"}`))
	if window := a["llm_config"].(map[string]any)["context_window"]; window != 32768.0 {
		t.Errorf("an unknown window is %v", window)
	}
	folder := fields(t, c.must("POST", "/v1/folders", `{"name":"f"}`))
	for _, config := range []any{a["embedding_config"], folder["embedding_config"]} {
		if c := config.(map[string]any); c["embedding_dim"] != 0.0 || c["embedding_model"] != "words" ||
			c["embedding_endpoint_type"] != "openai" {
			t.Errorf("without a model the embedding is %v", c)
		}
	}
}
