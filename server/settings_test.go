package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server"
)

// set gives the client's server some settings, and an embeddings endpoint that does not answer.
func (c *client) set(list ...server.Setting) {
	c.own().Settings = append(list, server.Setting{Variable: "LOCI_POLICY", Flag: "--policy", Value: "pi",
		Origin: server.OfEnvironment, Meaning: "How windows are kept."})
	c.own().ExamineEmbeddings = func(context.Context) db.Finding {
		return db.Finding{Of: "embeddings", State: db.Broken, Text: "broken, as the test says", Remedy: "mend it"}
	}
	c.own().Examine = func(context.Context) []db.Finding {
		return []db.Finding{{Of: "disk", State: db.Well, Text: "has room, as the test says"}}
	}
	c.Handler = c.server.Handler()
}

// Only the operator sees the server's settings and tests its endpoints. The page says that an organization's own policy
// takes precedence.
func TestTheOperatorSeesTheSettings(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.set(server.Setting{Variable: "LOCI_ADDR", Flag: "--addr", Value: "127.0.0.1:1", Origin: server.OfFlag})
	read := func(c *client) (list []server.RunningSetting) {
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/admin/settings", "")), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	want := []server.RunningSetting{{Setting: c.server.Settings[0]}, {Setting: c.server.Settings[1]}}
	if diff := cmp.Diff(want, read(c)); diff != "" {
		t.Errorf("the settings (-want +got):\n%s", diff)
	}
	c.must("PUT", "/v1/admin/policy", `{"policy":"claude-code"}`)
	if list := read(c); list[0].Stored != "" || list[1].Stored != `"claude-code"` || list[1].Value != "pi" {
		t.Errorf("with a policy of the organization: got %+v", list)
	}
	operator := c.operator()
	if got := operator.must("POST", "/v1/admin/settings/check", ""); !strings.Contains(got, "has room, as the test says") {
		t.Errorf("what the server needs: got %s", got)
	}
	if got := c.as("acme").call("POST", "/v1/admin/settings/check", ""); got.Code != 403 {
		t.Errorf("by another than the operator: got %d %s", got.Code, got.Text)
	}
	for endpoint, want := range map[string]string{"embeddings": `"state":"broken"`, "model": `"state":"ok"`} {
		if got := operator.must("POST", "/v1/admin/endpoints/"+endpoint+"/check", ""); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", endpoint, got, want)
		}
		if got := c.as("acme").call("POST", "/v1/admin/endpoints/"+endpoint+"/check", ""); got.Code != 403 {
			t.Errorf("%s by another than the operator: got %d %s", endpoint, got.Code, got.Text)
		}
	}
	page := operator.browse("POST", "/console/settings/embeddings", nil)
	if page.Code != 200 || !strings.Contains(page.Text, "as the test says") || !strings.Contains(page.Text, "mend it") {
		t.Errorf("the page after a test: got %d %s", page.Code, page.Text)
	}
	for visitor, shown := range map[*client]bool{operator: true, c.as("acme"): false} {
		page := visitor.browse("GET", "/console/settings", nil)
		if strings.Contains(page.Text, `"/console/settings"`) != shown ||
			strings.Contains(page.Text, "LOCI_ADDR") != shown || page.Code != 200 {
			t.Errorf("the page, for the operator: %v: got %d %s", shown, page.Code, page.Text)
		}
	}
}
