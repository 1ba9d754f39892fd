package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/userdata"
)

// remembered returns an agent that has talked with three users, whose words also stand in prompts, in a long result and
// in a summary; and the identity of ann.
func remembered(c *client) (agent, ann string) {
	c.t.Helper()
	agent, keys, conversations := talkedWith(c)
	for user, word := range userWords {
		id := conversations[user]
		long := strings.Repeat("a row of "+word+" and more\n", 9_000)
		c.must("POST", "/v1/agents/"+agent+"/messages/capture", fmt.Sprintf(`{"conversation_id":%q,"messages":[
			{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"rows","arguments":"{\"of\":\"%s\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":%s},{"role":"user","content":"Thanks, says %[2]s"}]}`, id, word,
			quoted(long)))
		keys[user].must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+id, "")
		c.capture(agent, strings.Replace(chatter(1, 8, word), "{", `{"conversation_id":"`+id+`",`, 1))
		c.must("POST", "/v1/conversations/"+id+"/compact", `{}`)
		keys[user].must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+id, "")
	}
	return agent, fields(c.t, c.must("GET", "/v1/conversations/"+conversations["ann"], ""))["identity_id"].(string)
}

func (c *client) memoryOf(identity, query string) (m userdata.UserMemory) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/identities/"+identity+"/memory"+query, "")), &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// One page says what a user has in each memory, and pages of it list all. The export has it in one file.
func TestEverythingOfAUserStandsOnOnePage(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	_, ann := remembered(c)
	m, listed := c.memoryOf(ann, "?limit=3"), map[string]int{}
	whole := m.Counts
	for _, kind := range userdata.Kinds() {
		if whole[kind] == 0 {
			t.Errorf("there is no %s: %v", kind, whole)
		}
	}
	for seen := map[string]bool{}; ; m = c.memoryOf(ann, "?limit=3&after="+*m.Next) {
		for _, i := range m.Items {
			if listed[i.Kind]++; seen[i.Kind+i.ID] {
				t.Errorf("%s %s is listed twice", i.Kind, i.ID)
			}
			seen[i.Kind+i.ID] = true
		}
		if m.Next == nil {
			break
		}
	}
	for kind, n := range whole {
		if listed[kind] != n {
			t.Errorf("%d of %d of %s are listed", listed[kind], n, kind)
		}
		if some := c.memoryOf(ann, "?limit=200&kind="+kind); len(some.Items) != min(n, 200) {
			t.Errorf("%d of %d of %s are listed alone", len(some.Items), n, kind)
		}
	}
	export := c.must("GET", "/v1/identities/"+ann+"/memory/export", "")
	for line := range strings.SplitSeq(strings.TrimSpace(export), "\n") {
		var of struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &of); err != nil || of.Kind == "" {
			t.Fatalf("a line of the export: %v %.300s", err, line)
		}
		listed[of.Kind]--
	}
	for kind, n := range listed {
		if n != 0 && kind != "identity" && kind != "file_text" {
			t.Errorf("the export lacks %d of %s", n, kind)
		}
	}
	if n := strings.Count(export, "a row of zanzibar and more"); n < 9_000 {
		t.Errorf("the export has %d rows of a long result", n)
	}
	if !strings.Contains(export, "The file says: the salary is zanzibar.") {
		t.Errorf("the export lacks the text of a file: %.2000s", export)
	}
	for _, other := range []string{"quokka", "tamarisk"} {
		if strings.Contains(export, other) {
			t.Errorf("the export has %s", other)
		}
	}
	for _, tt := range []struct {
		path string
		want int
	}{{"?kind=dream", 422}, {"?after=x", 422}, {"?limit=0", 422}, {"?colour=red", 422}} {
		if got := c.call("GET", "/v1/identities/"+ann+"/memory"+tt.path, ""); got.Code != tt.want {
			t.Errorf("%s: %d %s", tt.path, got.Code, got.Text)
		}
	}
}

// Blocks, passages and memory files of a user are corrected on that page, all or none, and nothing of another user.
func TestWhatIsKeptOfAUserIsCorrected(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	_, ann := remembered(c)
	first := func(identity, kind string) string { return c.memoryOf(identity, "?kind="+kind).Items[0].ID }
	bob := c.list("/v1/identities?identifier_key=bob")[0]["id"].(string)
	path, change := "/v1/identities/"+ann+"/memory", func(id, text string) string {
		return fmt.Sprintf(`{"id":%q,"text":%q}`, id, text)
	}
	block, passage, file := first(ann, "block"), first(ann, "passage"), first(ann, "memory_file")
	for _, tt := range []struct {
		changes string
		want    int
	}{
		{change(passage, "corrected") + "," + change(first(bob, "passage"), "mine"), 404},
		{change(passage, "corrected") + "," + change(first(bob, "block"), "mine"), 404},
		{change(passage, "corrected") + "," + change(first(bob, "memory_file"), "mine"), 404},
		{change(first(ann, "message"), "never said"), 422},
		{change(passage, " "), 422},
		{"", 422},
	} {
		if got := c.call("PATCH", path, `{"changes":[`+tt.changes+`]}`); got.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.changes, got.Code, got.Text, tt.want)
		}
	}
	if left := c.stored("corrected", "mine"); len(left) > 0 {
		t.Errorf("refused changes are stored: %.1000q", left)
	}
	got := c.must("PATCH", path, `{"changes":[`+change(block, "likes tea")+","+change(passage, "The salary is fair")+","+
		change(file, "It is fair")+`]}`)
	for _, text := range []string{"likes tea", "The salary is fair", "It is fair"} {
		if !strings.Contains(got, text) {
			t.Errorf("the answer lacks %q: %s", text, got)
		}
	}
}

// The erasure of a user's memory leaves no word of it in any column, and all of the other users.
func TestAUserIsErased(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent, ann := remembered(c)
	others := len(c.stored("quokka"))
	if n := len(c.stored("zanzibar")); n < 20 {
		t.Fatalf("the word is planted in %d places", n)
	}
	var e erase.Erasure
	got := c.must("DELETE", "/v1/identities/"+ann+"/memory?reason=asked+to", "")
	if err := json.Unmarshal([]byte(got), &e); err != nil {
		t.Fatal(err)
	}
	if e.Status != erase.Completed || e.UserID == nil || *e.UserID != ann || *e.Reason != "asked to" {
		t.Errorf("the erasure: %s", got)
	}
	for _, table := range []string{"messages", "passages", "blocks", "memory_trees", "files", "prompts", "compactions",
		"working_memories"} {
		if e.Report.Found[table] == 0 {
			t.Errorf("the report lacks %s: %v", table, e.Report.Found)
		}
	}
	if left := c.stored("zanzibar"); len(left) > 0 {
		t.Errorf("left: %.3000q", left)
	}
	if n := len(c.stored("quokka")); n != others {
		t.Errorf("another user has %d places, had %d", n, others)
	}
	for kind, n := range c.memoryOf(ann, "").Counts {
		if n != 0 {
			t.Errorf("%d of %s are left", n, kind)
		}
	}
	c.must("GET", "/v1/agents/"+agent+"/events?limit=1000", "")
	c.ofUser(agent, "bob").must("GET", "/v1/agents/"+agent+"/prompt", "")
	c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	if again := c.must("DELETE", "/v1/identities/"+ann+"/memory", ""); !strings.Contains(again, `"found":{}`) {
		t.Errorf("again: %s", again)
	}
	c.must("DELETE", "/v1/identities/"+ann, "")
	if got := c.call("DELETE", "/v1/identities/"+ann+"/memory", ""); got.Code != 404 {
		t.Errorf("nobody: %d %s", got.Code, got.Text)
	}
}

// If a server stops in the middle of the erasure of a user, another server continues it, at whatever statement it was.
func TestTheErasureOfAUserGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	c := newErasingClient(t)
	_, ann := remembered(c)
	c.own().Erasures.InBackground = true
	id := fields(t, c.must("DELETE", "/v1/identities/"+ann+"/memory", ""))["id"].(string)
	for n := 5; ; n *= 2 {
		ctx, cancel := context.WithCancel(t.Context())
		store := *c.server.Erasures
		stops := &stopping{DB: c.pool, stop: cancel}
		stops.after.Store(int64(n))
		store.DB = stops
		ended, err := store.Run(ctx)
		cancel()
		if err == nil && ended >= 1 && strings.Contains(c.must("GET", "/v1/erasures/"+id, ""), `"completed"`) {
			break
		}
		if n > 1_000_000 {
			t.Fatalf("it does not end: %v", err)
		}
		c.exec(`UPDATE erasures SET claimed_at = NULL WHERE org = $1`, c.org)
	}
	if left := c.stored("zanzibar"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
	if got := c.must("GET", "/v1/erasures/"+id, ""); strings.Contains(got, `"messages":0`) ||
		!strings.Contains(got, `"user_id":"`+ann+`"`) {
		t.Errorf("the report: %s", got)
	}
}
