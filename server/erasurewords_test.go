package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// If a text is also a word of Loci's own, erasing it changes nothing that does not contain the text, and the erasure's
// check agrees.
func TestAnErasureLeavesLocisOwnWords(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tool_set":"standard","metadata":{"place":"home"}}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"hi there"},{"role":"assistant","content":"hello"}]}`)
	record := "/v1/conversations/" + agent + "/working-memory"
	c.must("PATCH", record, `{"changes":[{"field":"task","text":"sail home"},{"field":"decisions","text":"use a boat"}]}`)
	before := c.must("GET", record, "") + c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	for _, word := range []string{"Tex", "seq", "evidence", "null", "type", "role"} {
		body := fmt.Sprintf(`{"texts":[%q]}`, word)
		for i, path := range []string{"/v1/erasures/preview", "/v1/erasures", "/v1/erasures/preview"} {
			got := c.must("POST", path, body)
			if strings.Contains(got, "working_memor") || strings.Contains(got, `"run_items"`) ||
				!strings.Contains(got, `"left":{}`) {
				t.Errorf("%s of %q: %s", path, word, got)
			}
			if i == 2 && !strings.Contains(got, `"found":{}`) {
				t.Errorf("the check of %q: %s", word, got)
			}
		}
	}
	if after := c.must("GET", record, "") + c.must("GET", "/v1/agents/"+agent+"/prompt", ""); after != before {
		t.Errorf("the record and the prompt were\n%s\nand are\n%s", before, after)
	}
}

// If a call's id contains the text, the call and its result keep the id. The erasure and its check name the place.
func TestAnErasureNamesTheIDsItLeaves(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, `{"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"call_grumblethorpe","type":
		"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_grumblethorpe",
		"content":"r"}]}`)
	for _, path := range []string{"/v1/erasures/preview", "/v1/erasures", "/v1/erasures/preview"} {
		got := c.must("POST", path, `{"texts":["grumblethorpe"]}`)
		if !strings.Contains(got, `"found":{}`) || !strings.Contains(got, `"left":{"messages.content":2}`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// A text that spans two neighboring parts of a message is erased, even if another text to erase is a part of it.
func TestAnErasureOfTwoSpellingsGoesAcrossParts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, `{"messages":[{"role":"user","content":[{"type":"text","text":"parts Hollowmere "},
		{"type":"text","text":"Tansy end"}]}]}`)
	c.must("POST", "/v1/erasures", `{"texts":["Hollowmere Tansy","Hollowmere"]}`)
	got := c.must("GET", "/v1/agents/"+agent+"/messages", "")
	if strings.Contains(got, "Tansy") || !strings.Contains(got, `"parts [erased]"`) || !strings.Contains(got, `" end"`) {
		t.Errorf("left: %s", got)
	}
}
