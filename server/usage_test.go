package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/retention"
)

// usageStep is a change of what a tenant stores.
type usageStep struct {
	what string
	do   func(o tenant)
}

// filled returns a text with the tenant's ids in place of the fields in braces.
func (t tenant) filled(text string) string {
	for field, id := range t.has {
		text = strings.ReplaceAll(text, "{"+field+"}", id)
	}
	return text
}

// request returns a step that sends a request, with the tenant's ids for the fields in braces.
func request(what, method, target, body string) usageStep {
	return usageStep{what, func(o tenant) { o.must(method, o.filled(target), o.filled(body)) }}
}

// usageSteps are the changes of each kind of what is counted, in an order in which each finds what it changes.
var usageSteps = []usageStep{
	{"all that a tenant makes", func(tenant) {}},
	request("a message", "POST", "/v1/agents/{agent_id}/messages/capture",
		`{"messages":[{"role":"user","content":"é \u0001"}]}`),
	request("a passage that is there", "POST", "/v1/archives/{archive_id}/passages", `{"text":"twice"}`),
	request("a passage again", "POST", "/v1/archives/{archive_id}/passages", `{"text":"twice"}`),
	request("a passage's new text", "PATCH", "/v1/agents/{agent_id}/archival-memory/{memory_id}",
		`{"text":"longer than it was"}`),
	request("a block's new value", "PATCH", "/v1/blocks/{block_id}", `{"value":"another","label":"renamed"}`),
	request("a memory file's new text", "PUT", "/v1/memory-trees/{tree_id}/file",
		`{"path":"/memories/n.md","content":"number 12345"}`),
	request("a redaction", "POST", "/v1/memory-trees/{tree_id}/redact", `{"text":"number 12345"}`),
	request("the deletion of a memory file", "DELETE", "/v1/memory-trees/{tree_id}/file?path=/memories/n.md", ``),
	{"a file in place of another", func(o tenant) {
		o.upload(o.has["folder_id"], "", "more.txt", "more")
		o.upload(o.has["folder_id"], "?duplicate_handling=replace", "more.txt", "even more")
		o.upload(o.has["folder_id"], "?duplicate_handling=replace", "more.txt", "the most")
	}},
	{"the file of an agent", func(o tenant) {
		o.imported(o.must("GET", o.filled("/v1/agents/{agent_id}/export?full=true"), ""))
	}},
	request("a fork", "POST", "/v1/conversations/{conversation_id}/fork", ``),
	request("an erasure", "POST", "/v1/erasures", `{"texts":["secret of counted"]}`),
	{"retention", func(o tenant) {
		deleted := map[string]int{}
		if err := (&retention.Store{DB: o.pool}).SweepOrg(o.t.Context(), o.org, deleted); err != nil {
			o.t.Fatal(err)
		}
	}},
	request("the deletion of a passage", "DELETE", "/v1/archives/{archive_id}/passages/{passage_id}", ``),
	request("the deletion of a block", "DELETE", "/v1/blocks/{block_id}", ``),
	request("the deletion of a memory tree", "DELETE", "/v1/memory-trees/{tree_id}", ``),
	request("the deletion of a conversation", "DELETE", "/v1/conversations/{conversation_id}", ``),
	{"the deletion of a file", func(o tenant) {
		o.must("DELETE", "/v1/folders/"+o.has["folder_id"]+"/"+o.uploaded(o.has["folder_id"], "gone.txt", "gone"), "")
	}},
	request("the deletion of a folder", "DELETE", "/v1/folders/{folder_id}", ``),
	request("the deletion of an archive", "DELETE", "/v1/archives/{archive_id}", ``),
	request("the deletion of an agent", "DELETE", "/v1/agents/{agent_id}", ``),
	{"the clearing of what was deleted", func(o tenant) {
		if _, err := o.pool.Exec(o.t.Context(), `UPDATE blobs SET used_at = now() - interval '2 hours' WHERE org = $1`,
			o.org); err != nil {
			o.t.Fatal(err)
		}
		for rows := 1; rows > 0; {
			messages, err := o.server.Recall.Clear(o.t.Context())
			if err != nil {
				o.t.Fatal(err)
			}
			passages, err := o.server.Archival.Clear(o.t.Context())
			if err != nil {
				o.t.Fatal(err)
			}
			rows = messages + passages
		}
	}},
}

// What is counted as stored is what a recount finds, after each kind of change and each kind of deletion.
func TestUsageIsRecountedAfterEachChange(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t)
	c.work()
	o := newTenant(c, "counted")
	for _, step := range usageSteps {
		step.do(o)
		o.wantCounted(o.org)
		if t.Failed() {
			t.Fatalf("after %s", step.what)
		}
	}
}

// A purge of a deleted organization leaves no usage.
func TestADeletedOrganizationHasNoUsage(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t)
	c.work()
	o := newTenant(c, "gone")
	if _, err := o.server.Keys.DeleteOrg(t.Context(), o.has["org_id"]); err != nil {
		t.Fatal(err)
	}
	purge := db.Purge{DB: o.pool, Org: o.org}
	for done := false; !done; {
		var err error
		if done, err = purge.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n, err := db.One[int](t.Context(), o.pool, `SELECT count(*) FROM stored_usage WHERE org = $1`, o.org)
	if n > 0 || err != nil {
		t.Errorf("%d rows of usage are left, %v", n, err)
	}
}
