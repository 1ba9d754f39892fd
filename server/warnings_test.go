package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/rest"
)

func TestStreamedBodiesAreCheckedToo(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	target := "/v1/agents/" + agent + "/messages/capture"
	got := c.call("POST", target, `{"messages":[{"role":"user","content":"hi","refusal":null}],"mesages":[],"usge":1}`)
	if want := `"warnings":["Loci does not know the field \"mesages\"; did you mean messages?",` +
		`"Loci does not know the field \"usge\"; did you mean usage?"]`; got.Code != 200 ||
		!strings.Contains(got.Text, want) {
		t.Errorf("capture: got %d %s, want %s", got.Code, got.Text, want)
	}
	got = c.call("POST", target+"?mesages=1", `{"messages":[{"role":"user","content":"hi","otid":"1"}],"usge":1}`)
	if want := `["Loci does not know the parameter \"mesages\"","Loci does not know the field \"usge\"; did you mean ` +
		`usage?"]`; !strings.Contains(got.Text, `"warnings":`+want) {
		t.Errorf("capture: got %d %s, want %s", got.Code, got.Text, want)
	}
	got = c.call("GET", "/v1/agents?idenity_id=x&limt=2&ascending=true&order_by=created_at&project_id=", "")
	if want := `["Loci does not know the parameter \"idenity_id\"; did you mean identity_id?",` +
		`"Loci does not know the parameter \"limt\"; did you mean limit?"]`; got.Header().Get(rest.WarningsHeader) != want {
		t.Errorf("agents: got %d with %s, want %s", got.Code, got.Header().Get(rest.WarningsHeader), want)
	}
	for body, field := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}],"messages":[]}`: "body.messages",
		`{"messages":[{"role":"user","content":"hi"},{"role":"user","content":"a","content":"b"}]}`: "body.messages[1]." +
			"content",
		`{"messages":{"role":"user","role":"user","content":"hi"}}`: "body.messages.role",
	} {
		if got := c.call("POST", target, body); got.Code != 422 ||
			!strings.Contains(got.Text, field+": the field is there twice") {
			t.Errorf("capture of %s: got %d %s, want 422 about %s", body, got.Code, got.Text, field)
		}
	}
	if said := c.said(agent); len(said) != 2 {
		t.Errorf("got %q, want the first two messages alone", said)
	}
	archive := c.made("/v1/archives", `{"name":"a"}`)
	got = c.call("POST", "/v1/archives/"+archive+"/passages/batch?x=1",
		"\uFEFF"+`{"passages":[{"text":"a"},{"Text":"b","text":"c","created_by_id":null}],"archive":1}`)
	want := `["Loci does not know the parameter \"x\"",` +
		`"Loci does not know the field \"passages[1].Text\"; did you mean text?",` +
		`"Loci does not know the field \"archive\""]`
	if header := got.Header().Get(rest.WarningsHeader); got.Code != 200 || header != want ||
		!strings.Contains(got.Text, `"text":"c"`) {
		t.Errorf("passages: got %d %s with %s, want %s", got.Code, got.Text, header, want)
	}
}

// Clients of Letta's usually send whole objects that they have read, and null fields. These cause no warnings.
func TestObjectsThatWereReadAreSentBackWithoutWarnings(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	block := c.must("POST", "/v1/blocks", `{"label":"human","value":"Ann"}`)
	for _, body := range []string{`{"memory_blocks":[` + block + `]}`,
		`{"name":"a","embedding":"openai/text-embedding-3-small","embedding_chunk_size":300,"include_base_tools":true,
		"memory_blocks":[{"label":"persona","value":"I.","limit":null}],"project_id":null,"template_id":null,
		"tool_ids":[],"secrets":{},"identity_ids":null}`} {
		if got := c.must("POST", "/v1/agents/", body); strings.Contains(got, `"warnings"`) {
			t.Errorf("%s: got %s, want no warning", body, got)
		}
	}
	agent := c.must("GET", "/v1/agents/"+c.made("/v1/agents", "")+"?include=agent.tools&include=agent.blocks", "")
	if strings.Contains(agent, `"warnings"`) || strings.Contains(agent, `"temperature":null`) {
		t.Errorf("an agent: got %s, want neither a warning nor a null that Letta's types do not have", agent)
	}
	folder := c.must("POST", "/v1/folders/", `{"name":"f","embedding":"openai/text-embedding-3-small"}`)
	if strings.Contains(folder, `"warnings"`) {
		t.Errorf("a folder: got %s, want no warning", folder)
	}
}

// Turns are stored before their usage. If storing the usage fails, the answer is no error, because the client would
// send the turns again.
func TestAUsageThatCannotBeStoredIsNoError(t *testing.T) {
	t.Parallel()
	c := newElsewhereClient(t)
	agent := c.made("/v1/agents", "")
	c.trigger(`BEFORE UPDATE OF reported_tokens ON conversations`, `
		IF NEW.reported_tokens > 0 THEN RAISE 'the disk is on fire'; END IF`)
	got := c.call("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"user","content":"hi"},
		{"role":"assistant","content":"hello"}],"usage":{"prompt_tokens":77}}`)
	conversation, err := c.server.Recall.Conversation(t.Context(), c.org, agent, "default")
	if err != nil || got.Code != 200 || len(c.said(agent)) != 2 || conversation.Reported != 0 {
		t.Errorf("got %d %s, %v and a usage of %d; want 200, both turns, and no usage", got.Code, got.Text, err,
			conversation.Reported)
	}
}

// All of Letta's compaction settings are known, so another name is a mistake.
func TestUnknownCompactionSettingsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	got := c.call("POST", "/v1/agents", `{"compaction_settings":{"mode":"all","triger":0.9,"model_settings":{"x":1}}}`)
	want := `body.compaction_settings.triger: there is no such setting; did you mean trigger?`
	if got.Code != 422 || !strings.Contains(got.Text, want) {
		t.Errorf("got %d %s, want %s", got.Code, got.Text, want)
	}
}

// For Letta, "", 0 and null mean that no value is given.
func TestEmptyValuesAreNotGiven(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"model":"","embedding":"","timezone":"","context_window_limit":0,"from_template":null,
		"template_id":"","memory_variables":{},"include_multi_agent_tools":false,"system":"",
		"llm_config":{"handle":"","model":"","context_window":0},"memory_blocks":[{"label":"a","value":null,"limit":0}]}`)
	base := "/v1/agents/" + agent
	unset := []string{"model", "embedding", "timezone", "context_window_limit"}
	if got := pick(t, c.must("GET", base, ""), unset...); got !=
		`{"context_window_limit":null,"embedding":null,"model":null,"timezone":"UTC"}` {
		t.Errorf("created: got %s, want nothing", got)
	}
	c.must("PATCH", base, `{"model":"openai/gpt-5","embedding":"a/b","timezone":"Europe/Berlin",
		"context_window_limit":9000}`)
	got := pick(t, c.must("PATCH", base, `{"model":"","embedding":"","timezone":""}`), unset...)
	want := `{"context_window_limit":9000,"embedding":"a/b","model":"openai/gpt-5","timezone":"Europe/Berlin"}`
	if got != want {
		t.Errorf("changed: got %s, want %s", got, want)
	}
	if got := fields(t, c.must("PATCH", base, `{"context_window_limit":0}`)); got["context_window_limit"] != nil {
		t.Errorf("a window of 0: got %v, want null", got["context_window_limit"])
	}
	for _, body := range []string{`{"limit":7}`, `{"limit":null}`, `{"limit":0}`} {
		got := fields(t, c.must("PATCH", base+"/core-memory/blocks/a", body))["limit"]
		if want := map[bool]any{true: 100_000.0, false: 7.0}[body == `{"limit":0}`]; got != want {
			t.Errorf("a block's %s: got %v, want %v", body, got, want)
		}
	}
	conversation := c.must("POST", "/v1/conversations?agent_id="+agent, `{"model":"","context_window_limit":0,
		"model_settings":null,"isolated_block_labels":null}`)
	if got := pick(t, conversation, "model", "context_window_limit", "model_settings"); got !=
		`{"context_window_limit":null,"model":null,"model_settings":null}` {
		t.Errorf("a conversation: got %s, want nothing", got)
	}
	for _, call := range [][3]string{
		{"GET", base + "/archival-memory/search?query=x&top_k=0&tag_match_mode=&start_datetime=", ""},
		{"POST", "/v1/passages/search", `{"query":"","agent_id":"","archive_id":null,"tags":null,"start_date":"",
			"after":""}`},
		{"POST", "/v1/messages/search", `{"query":"x","agent_id":"","conversation_id":"","start_date":"","end_date":null,
			"search_mode":null,"roles":null,"limit":null,"offset":0,"after":""}`},
		{"PATCH", base + "/reset-messages", `{"add_default_initial_messages":null}`},
		{"POST", "/v1/blocks", `{"label":"b","value":null,"limit":null,"tags":null,"metadata":null,"template_id":null}`},
		{"POST", base + "/archival-memory", `{"text":"x","tags":null,"created_at":""}`},
		{"POST", "/v1/folders", `{"name":"f","description":"","instructions":null,"embedding_chunk_size":null}`},
	} {
		if got := c.call(call[0], call[1], call[2]); got.Code != 200 || strings.Contains(got.Text, `"warnings"`) {
			t.Errorf("%s: got %d %s", call, got.Code, got.Text)
		}
	}
}

// Each route that sends messages warns of unknown fields: in the answer if it is an object, and in the header if it is
// a stream.
func TestUnknownFieldsOfMessagesAreNamed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	of := "/v1/agents/" + r.agent
	conversation := "/v1/conversations/" + r.made("/v1/conversations?agent_id="+r.agent, "") + "/messages"
	const said = `"messages":[{"role":"user","content":[{"type":"text","text":"x","bogus":1}],"bogs":1}],"max_step":1}`
	want := []string{`"max_step\"; did you mean max_steps?`, `"messages[0].bogs\"`, `"messages[0].content[0].bogus\"`}
	for _, path := range []string{of + "/messages", of + "/messages/stream", conversation} {
		for _, streaming := range []string{"false", "true"} {
			r.model.Says(modeltest.Answer{Text: "Well"})
			got := r.call("POST", path, `{"streaming":`+streaming+`,`+said)
			warning := got.Text
			if strings.HasSuffix(path, "/stream") || streaming == "true" {
				warning = got.Header().Get(rest.WarningsHeader)
			} else if warnings, ok := fields(t, got.Text)["warnings"].([]any); !ok || len(warnings) != len(want) {
				t.Errorf("%s: got %s", path, got.Text)
			}
			for _, name := range want {
				if !strings.Contains(warning, name) {
					t.Errorf("%s, streaming %s: got %d with %s, want a warning of %s", path, streaming, got.Code, warning, name)
				}
			}
		}
	}
	rules := `{"tool_rules":[{"type":"exit_loop","tool_name":"memory_insert","prompt_template":"T","weird":1}]}`
	for _, got := range []string{r.must("POST", "/v1/agents", rules), r.must("PATCH", of, rules)} {
		if !strings.Contains(got, `the field \"tool_rules[0].weird\"`) || strings.Contains(got, `"weird":`) ||
			!strings.Contains(got, `"prompt_template":"T"`) {
			t.Errorf("a rule: got %s", got)
		}
	}
}
