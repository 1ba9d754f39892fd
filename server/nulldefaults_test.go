package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// A null in a PATCH restores the default of each setting that only Loci has.
func TestNullRestoresDefaults(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"flush":{"mode":"flush"},"handover":{"mode":"pending"},"working_memory":"automatic",
		"recall_scope":"conversation"}`)
	got := fields(t, c.must("PATCH", "/v1/agents/"+agent,
		`{"flush":null,"handover":null,"working_memory":null,"recall_scope":null,"open_on_attach":null}`))
	if got["flush"] != nil || got["handover"] != nil || got["working_memory"] != "manual" ||
		got["recall_scope"] != "user" {
		t.Errorf("the settings are %v, %v, %v, %v", got["flush"], got["handover"], got["working_memory"],
			got["recall_scope"])
	}
	const path = "/v1/admin/retention"
	c.must("PATCH", path, `{"prompts_days":7,"prompts_kept":8,"vectors_days":9,"long_results_days":10}`)
	days := fields(t, c.must("PATCH", path, `{"prompts_days":null,"prompts_kept":null,"vectors_days":null}`))
	if fmt.Sprint(days["prompts_days"], days["prompts_kept"], days["vectors_days"], days["long_results_days"]) !=
		"30 1000 0 10" {
		t.Errorf("the retention is %v", days)
	}
}

// An empty hash expects that there is no text. It overwrites no existing text, and is refused where there is always
// one.
func TestAnEmptyHashOverwritesNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	tree := c.made("/v1/memory-trees", `{"name":"t"}`)
	path := "/v1/memory-trees/" + tree + "/file"
	c.must("PUT", path, `{"path":"/memories/a.md","content":"mine","expected_sha256":""}`)
	if got := c.call("PUT", path, `{"path":"/memories/a.md","content":"theirs","expected_sha256":""}`); got.Code != 409 {
		t.Errorf("a file that is there: %d %s", got.Code, got.Text)
	}
	if got := c.must("GET", path+"?path=/memories/a.md", ""); !strings.Contains(got, "mine") {
		t.Errorf("the file is %s", got)
	}
	if got := c.call("POST", "/v1/memory-trees/"+tree+"/restore",
		`{"path":"/memories/a.md","version":1,"expected_sha256":""}`); got.Code != 422 ||
		!strings.Contains(got.Text, "is empty") {
		t.Errorf("a restored file: %d %s", got.Code, got.Text)
	}
	block := c.made("/v1/blocks", `{"label":"l","value":"mine"}`)
	if got := c.call("PATCH", "/v1/blocks/"+block, `{"value":"theirs","expected_sha256":""}`); got.Code != 400 {
		t.Errorf("a block: %d %s", got.Code, got.Text)
	}
}
