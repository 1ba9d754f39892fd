package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/quota"
)

// usageOf returns an organization's usage.
func (c *client) usageOf(org string) (usage quota.OrgUsage) {
	c.t.Helper()
	var list []quota.OrgUsage
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/admin/usage?org_id="+org, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	if len(list) != 1 {
		c.t.Fatalf("the usage of %s: got %v", org, list)
	}
	return list[0]
}

// wantQuota checks that a request for agents is refused because of a quota, and that the error names the quota, the use
// and the limit.
func (c *client) wantQuota(method, body string, status int, want db.QuotaError) {
	c.t.Helper()
	got := c.call(method, "/v1/agents", body)
	var answer struct {
		Code  string
		Quota db.QuotaError
	}
	err := json.Unmarshal([]byte(got.Text), &answer)
	if err != nil || got.Code != status || answer.Code != "quota_exceeded" || answer.Quota != want ||
		!strings.Contains(got.Text, fmt.Sprint(want.Limit)) {
		c.t.Errorf("%s of agents: got %d %s, want %d with %+v", method, got.Code, got.Text, status, want)
	}
}

// An organization can create exactly as many agents as its quota allows, even with simultaneous requests. Other
// organizations' agents do not count.
func TestAQuotaOfAgentsHoldsExactly(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	acme, other, operator := c.as("acme"), c.as("other"), c.operator()
	id := operator.orgNamed(c.unique("acme")).ID
	acme.made("/v1/agents", `{"name":"first"}`)
	operator.must("PATCH", "/v1/admin/quotas?org_id="+id, `{"agents":5}`)
	var created, refused int
	var mu sync.Mutex
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			got := acme.call("POST", "/v1/agents", fmt.Sprintf(`{"name":"a%d"}`, i))
			mu.Lock()
			defer mu.Unlock()
			switch got.Code {
			case 200:
				created++
			case 403:
				refused++
			default:
				t.Errorf("got %d %s", got.Code, got.Text)
			}
		})
	}
	callers.Wait()
	if created != 4 || refused != 16 || operator.usageOf(id).Agents != 5 {
		t.Errorf("%d were made and %d refused of 20, and 1 was there; the report says %d; want 5 in all", created, refused,
			operator.usageOf(id).Agents)
	}
	acme.wantQuota("POST", `{"name":"more"}`, 403, db.QuotaError{Quota: "agents", Used: 5, Requested: 1,
		Limit: 5})
	other.made("/v1/agents", `{"name":"of another"}`)
	var agents []struct{ ID string }
	if err := json.Unmarshal([]byte(acme.must("GET", "/v1/agents", "")), &agents); err != nil {
		t.Fatal(err)
	}
	acme.must("DELETE", "/v1/agents/"+agents[0].ID, "")
	acme.made("/v1/agents", `{"name":"in its place"}`)
	operator.must("PATCH", "/v1/admin/quotas?org_id="+id, `{"agents":null}`)
	acme.made("/v1/agents", `{"name":"without a quota"}`)
}

// Simultaneous uploads together do not exceed a quota of bytes. A refused upload leaves no row.
func TestAQuotaOfBytesHoldsExactlyForFiles(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	acme, operator := c.as("acme"), c.operator()
	id := operator.orgNamed(c.unique("acme")).ID
	folder := acme.made("/v1/folders", `{"name":"f"}`)
	operator.must("PATCH", "/v1/admin/quotas?org_id="+id, `{"stored_bytes":3500}`)
	var callers sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 10 {
		callers.Go(func() {
			got := acme.upload(folder, "", fmt.Sprintf("%d.txt", i), strings.Repeat("x", 1000))
			mu.Lock()
			defer mu.Unlock()
			codes[got.Code]++
		})
	}
	callers.Wait()
	usage := operator.usageOf(id)
	if codes[200] != 3 || codes[403] != 7 || usage.Documents != 3 || usage.Bytes.Documents != 3000 ||
		usage.StoredBytes != 3000 {
		t.Errorf("statuses %v, usage %+v; want 3 files of 1,000 bytes", codes, usage)
	}
	if n, err := db.One[int](t.Context(), c.pool, `
		SELECT count(*) FROM file_originals WHERE org = $1`, acme.org); err != nil || n != 3 {
		t.Errorf("%d pieces of originals are stored, %v; want 3", n, err)
	}
	var files []struct{ ID string }
	if err := json.Unmarshal([]byte(acme.must("GET", "/v1/folders/"+folder+"/files", "")), &files); err != nil {
		t.Fatal(err)
	}
	acme.must("DELETE", "/v1/folders/"+folder+"/"+files[0].ID, "")
	if usage := operator.usageOf(id); usage.Documents != 2 || usage.StoredBytes != 2000 {
		t.Errorf("after the deletion of a file: %+v", usage)
	}
	if got := acme.upload(folder, "", "new.txt", strings.Repeat("y", 1500)); got.Code != 200 {
		t.Errorf("an upload into the room: got %d %s", got.Code, got.Text)
	}
}

// Above a quota of bytes, nothing new of any kind is stored, not even in part. Everything stored can be read and
// deleted. Answers in a turn that has begun, and erasures, are still stored.
func TestBeyondAQuotaOfBytes(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	acme, operator := c.as("acme"), c.operator()
	id := operator.orgNamed(c.unique("acme")).ID
	agent := acme.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"notes","value":"v"}]}`)
	acme.capture(agent, chatter(1, 2, "Ann Lee"))
	tree := acme.made("/v1/memory-trees", `{"name":"t"}`)
	acme.must("PATCH", "/v1/agents/"+agent+"/memory-trees/attach/"+tree, "")
	full := operator.usageOf(id).StoredBytes
	operator.must("PATCH", "/v1/admin/quotas?org_id="+id, fmt.Sprintf(`{"stored_bytes":%d}`, full))
	for _, r := range [][3]string{
		{"POST", "/v1/agents/" + agent + "/messages/capture", `{"messages":[{"role":"user","content":"more"}]}`},
		{"POST", "/v1/agents/" + agent + "/archival-memory", `{"text":"more"}`},
		{"POST", "/v1/blocks", `{"label":"l","value":"more"}`},
		{"PATCH", "/v1/agents/" + agent + "/core-memory/blocks/notes", `{"value":"more"}`},
		{"PUT", "/v1/memory-trees/" + tree + "/file", `{"path":"/memories/a.md","content":"more"}`},
	} {
		if got := acme.call(r[0], r[1], r[2]); got.Code != 403 || !strings.Contains(got.Text, `"quota":"stored_bytes"`) {
			t.Errorf("%s %s: got %d %s", r[0], r[1], got.Code, got.Text)
		}
	}
	result := acme.must("POST", "/v1/agents/"+agent+"/tools/core_memory_append/run",
		`{"args":{"label":"notes","content":"m"}}`)
	if !strings.Contains(result, "quota of stored bytes") {
		t.Errorf("the tool says %s", result)
	}
	if usage := operator.usageOf(id); usage.StoredBytes != full {
		t.Errorf("%d bytes are stored, before %d", usage.StoredBytes, full)
	}
	acme.capture(agent, `{"messages":[{"role":"assistant","content":"the answer of a turn that has begun"}]}`)
	acme.must("POST", "/v1/erasures", `{"texts":["Ann Lee"]}`)
	acme.must("GET", "/v1/agents/"+agent+"/prompt", "")
	acme.must("DELETE", "/v1/agents/"+agent, "")
}

// The counts of what is stored agree with the rows after any change, whether or not the counts were folded.
func TestUsageIsWhatIsStored(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	alice, mallory := newTenant(c, "alice"), newTenant(c, "mallory")
	alice.must("POST", "/v1/erasures", `{"texts":["secret of alice"]}`)
	mallory.must("DELETE", "/v1/agents/"+mallory.has["agent_id"], "")
	mallory.must("DELETE", "/v1/folders/"+mallory.has["folder_id"], "")
	mallory.must("DELETE", "/v1/archives/"+mallory.has["archive_id"], "")
	check := func() {
		t.Helper()
		for _, owner := range []tenant{alice, mallory} {
			c.wantCounted(owner.org)
		}
	}
	check()
	for i := range 60 {
		alice.must("PUT", "/v1/memory-trees/"+alice.has["tree_id"]+"/file",
			fmt.Sprintf(`{"path":"/memories/n.md","content":"again %d"}`, i))
	}
	rows := func() int {
		n, err := db.One[int](t.Context(), c.pool, `SELECT count(*) FROM stored_usage WHERE org = $1`, alice.org)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := rows()
	var folding sync.WaitGroup
	for range 3 {
		folding.Go(func() {
			if err := c.server.Quotas.FoldOrg(t.Context(), alice.org); err != nil {
				t.Error(err)
			}
		})
	}
	folding.Wait()
	if after := rows(); after >= before {
		t.Errorf("%d rows of usage, before folding %d", after, before)
	}
	check()
}

// Only organizations with many rows of usage are folded.
func TestOrganizationsWithMuchUsageAreFolded(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t) // Fold works on all organizations
	few := dbtest.NewOrg(t, c.pool)
	for org, rows := range map[db.Org]int{c.org: 120, few: 3} {
		c.exec(`INSERT INTO stored_usage (org, kind, items, bytes)
			SELECT $1, 'folded ' || n % 2, 1, 10 FROM generate_series(1, $2) n`, org, rows)
	}
	if err := c.server.Quotas.Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := db.All[string](t.Context(), c.pool, `
		SELECT concat_ws(' ', org = $1, kind, items, bytes) FROM stored_usage
		WHERE org IN ($1, $2) AND kind LIKE 'folded %' ORDER BY org = $1, kind, key`, few, c.org)
	want := []string{"f folded 0 60 600", "f folded 1 60 600", "t folded 0 1 10", "t folded 1 1 10", "t folded 1 1 10"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// wantCounted compares an organization's report with its rows. It reads both in one snapshot, because the deletion of a
// folder continues after its answer.
func (c *client) wantCounted(org db.Org) {
	c.t.Helper()
	if err := db.Snapshot(c.t.Context(), c.pool, func(tx pgx.Tx) error {
		reports, err := (&quota.Store{DB: tx}).Usages(c.t.Context(), org, false, time.Now(), db.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(reports) != 1 {
			return fmt.Errorf("there are %d reports", len(reports))
		}
		got := reports[0]
		type counted struct{ Items, Bytes int64 }
		for kind, query := range map[string]struct {
			sql  string
			want counted
		}{
			"agents": {`count(*) AS items, 0 AS bytes FROM agents`, counted{got.Agents, 0}},
			"documents": {`count(*) AS items, coalesce(sum(size_bytes), 0) AS bytes FROM files`,
				counted{got.Documents, got.Bytes.Documents}},
			"messages": {`count(*) AS items, coalesce(sum(octet_length(content::text)), 0) AS bytes FROM messages`,
				counted{got.Messages, got.Bytes.Messages}},
			"passages": {`count(*) AS items, coalesce(sum(octet_length(text)), 0) AS bytes FROM passages`,
				counted{got.Passages, got.Bytes.Passages}},
			"long results": {`0 AS items, coalesce(sum(size_bytes), 0) AS bytes FROM blobs`,
				counted{0, got.Bytes.LongResults}},
			"block versions": {`0 AS items, coalesce(sum(octet_length(value)), 0) AS bytes FROM block_versions`,
				counted{0, got.Bytes.BlockVersions}},
			"memory files": {`0 AS items, coalesce(sum(octet_length(content)), 0) AS bytes FROM memory_file_versions`,
				counted{0, got.Bytes.MemoryFileVersions}},
		} {
			counts, err := db.One[counted](c.t.Context(), tx, `SELECT `+query.sql+` WHERE org = $1`, org)
			if err != nil {
				return err
			}
			if counts != query.want {
				c.t.Errorf("%s of %s: the report has %+v, the table %+v", kind, got.OrgName, query.want, counts)
			}
		}
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
}
