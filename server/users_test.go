package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// userWords maps a user → a word that is said and stored for that user alone.
var userWords = map[string]string{"ann": "zanzibar", "bob": "quokka", "cid": "tamarisk"}

// ofUser returns a client with a key of an agent that is bound to a user.
func (c *client) ofUser(agent, user string) *client {
	c.t.Helper()
	key, err := c.server.Agents.UserKeyOrNew(c.t.Context(), c.org, user)
	if err != nil {
		c.t.Fatal(err)
	}
	i, err := c.server.Agents.IdentityByKey(c.t.Context(), c.org, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.scoped(apikey.NewKey{In: c.org, Scopes: []string{apikey.Tools}, AgentIDs: []string{agent},
		User: &apikey.User{ID: i.ID, Key: key}})
}

// forUser sends a request with the header X-Loci-User, unless user is empty.
func (c *client) forUser(user, method, target string) servertest.Reply {
	headers := c.headers()
	if user != "" {
		headers = append(headers, "X-Loci-User", user)
	}
	return servertest.Send(c, method, target, "", headers...)
}

// talkedWith returns an agent that has talked with three users, a key of each, and the conversation with each.
func talkedWith(c *client) (agent string, keys map[string]*client, conversations map[string]string) {
	c.t.Helper()
	agent = c.made("/v1/agents", `{"name":"support","tool_set":"all","memory_blocks":[{"label":"human","value":"?"}]}`)
	c.work()
	shared := c.made("/v1/folders", `{"name":"everybody's"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+shared+"?open_on_attach=false", "")
	c.uploaded(shared, "rules.txt", "The rule of every salary is kindness.")
	keys, conversations = map[string]*client{}, map[string]string{}
	for user, word := range userWords {
		key := c.ofUser(agent, user)
		keys[user] = key
		id := key.made("/v1/agents/"+agent+"/conversations", `{"summary":"about `+word+`"}`)
		conversations[user] = id
		key.must("POST", "/v1/agents/"+agent+"/messages/capture", `{"conversation_id":"`+id+`",
			"messages":[{"role":"user","content":"My salary is `+word+`"},{"role":"assistant","content":"Noted: `+word+`."}]}`)
		folder := c.made("/v1/folders", `{"name":"pay of `+user+`","user_id":"`+user+`"}`)
		c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
		c.uploaded(folder, "pay.txt", "The file says: the salary is "+word+".")
		for _, call := range []string{`archival_memory_insert {"content":"The salary is ` + word + `"}`,
			`core_memory_append {"label":"human","content":"has ` + word + `"}`,
			`memory {"command":"create","path":"/memories/pay.md","file_text":"It is ` + word + `"}`,
			`open_files {"file_requests":[{"file_name":"pay.txt"},{"file_name":"rules.txt"}]}`,
			`update_working_memory {"changes":[{"field":"task","text":"Pay ` + word + `"}]}`} {
			name, args, _ := strings.Cut(call, " ")
			ran := fields(c.t, key.must("POST", "/v1/agents/"+agent+"/tools/"+name+"/run",
				`{"conversation_id":"`+id+`","args":`+args+`}`))
			if ran["status"] != "success" {
				c.t.Fatalf("%s of %s: %v", name, user, ran)
			}
		}
	}
	return agent, keys, conversations
}

// A key that is bound to a user finds what is the user's.
func TestAKeyOfAUserReadsItsOwn(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent, keys, conversations := talkedWith(c)
	base, ann := "/v1/agents/"+agent, keys["ann"]
	for _, r := range [][3]string{
		{"GET", base + "/conversations", ""},
		{"GET", "/v1/conversations/" + conversations["ann"], ""},
		{"GET", "/v1/conversations/" + conversations["ann"] + "/messages", ""},
		{"GET", "/v1/conversations/" + conversations["ann"] + "/working-memory", ""},
		{"GET", base + "/memory-search?query=salary", ""},
		{"GET", base + "/archival-memory", ""},
		{"GET", base + "/archival-memory/search?query=salary", ""},
		{"GET", base + "/prompt?conversation_id=" + conversations["ann"], ""},
		{"GET", base + "/prompt", ""}, // the default conversation is the user's first
		{"POST", base + "/tools/conversation_search/run", `{"args":{"query":"salary","limit":5}}`},
		{"POST", base + "/tools/archival_memory_search/run", `{"args":{"query":"salary"}}`},
		{"POST", base + "/tools/open_files/run", `{"args":{"file_requests":[{"file_name":"pay.txt"}]}}`},
		{"POST", base + "/tools/grep_files/run", `{"args":{"pattern":"salary"}}`},
		{"POST", base + "/tools/semantic_search_files/run", `{"args":{"query":"salary"}}`},
		{"POST", base + "/tools/memory/run", `{"args":{"command":"view","path":"/memories/pay.md"}}`},
	} {
		if got := ann.call(r[0], r[1], r[2]); got.Code != 200 || !strings.Contains(got.Text, "zanzibar") {
			t.Errorf("%s %s: %d %s", r[0], r[1], got.Code, got.Text)
		}
	}
	for _, r := range [][3]string{
		{"GET", "/v1/conversations/" + conversations["bob"], ""},
		{"POST", "/v1/conversations/" + conversations["bob"] + "/messages", `{"messages":[{"role":"user","content":"x"}]}`},
		{"POST", base + "/messages/capture", `{"conversation_id":"` + conversations["bob"] +
			`","messages":[{"role":"user","content":"x"}]}`},
		{"POST", base + "/tools/conversation_search/run", `{"conversation_id":"` + conversations["bob"] +
			`","args":{"query":"salary"}}`},
	} {
		if got := ann.call(r[0], r[1], r[2]); got.Code != 404 {
			t.Errorf("ann's key with bob's conversation, %s %s: %d %s", r[0], r[1], got.Code, got.Text)
		}
	}
	if got := ann.call("GET", base+"/archival-memory/search?query=salary&user_id=bob", ""); got.Code != 403 {
		t.Errorf("ann's key names bob: %d %s", got.Code, got.Text)
	}
}

// Requests of a key for all users name one in the header X-Loci-User or in user_id; a route that does not keep to users
// refuses the header, and a blank name is refused.
func TestARequestNamesItsUser(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent, _, _ := talkedWith(c)
	found := func(query, header string) []string {
		t.Helper()
		got := c.forUser(header, "GET", "/v1/agents/"+agent+"/archival-memory/search?query=salary"+query)
		if got.Code != 200 {
			t.Fatalf("%s, header %q: %d %s", query, header, got.Code, got.Text)
		}
		var all []string
		for user, word := range userWords {
			if strings.Contains(got.Text, word) {
				all = append(all, user)
			}
		}
		slices.Sort(all)
		return all
	}
	for _, tt := range []struct {
		query, header string
		want          []string
	}{{"", "", []string{"ann", "bob", "cid"}}, {"&user_id=bob", "", []string{"bob"}}, {"", "ann", []string{"ann"}},
		{"&user_id=ann", "ann", []string{"ann"}}} {
		if got := found(tt.query, tt.header); !slices.Equal(got, tt.want) {
			t.Errorf("%q, header %q finds what is %q's, want %q", tt.query, tt.header, got, tt.want)
		}
	}
	for _, tt := range []struct {
		path, header string
		want         int
	}{{"/v1/agents/" + agent + "/archival-memory/search?query=x&user_id=nobody", "", 404},
		{"/v1/agents/" + agent + "/archival-memory/search?query=x&user_id=%20", "", 422},
		{"/v1/agents/" + agent + "/archival-memory/search?query=x&user_id=bob", "ann", 403},
		{"/v1/agents", "ann", 403}, {"/v1/agents/" + agent + "/messages", "ann", 403}} {
		if got := c.forUser(tt.header, "GET", tt.path); got.Code != tt.want {
			t.Errorf("%s, header %q: %d %s, want %d", tt.path, tt.header, got.Code, got.Text, tt.want)
		}
	}
	shared := c.made("/v1/agents", `{"name":"letta's","made_for":"letta"}`)
	if got := c.forUser("ann", "GET", "/v1/agents/"+shared+"/archival-memory"); got.Code != 403 ||
		!strings.Contains(got.Text, "recall_scope") {
		t.Errorf("an agent whose users share one memory: %d %s", got.Code, got.Text)
	}
}

// A key is bound to a user when it is made, and then works as agents alone.
func TestAKeyIsBoundToAUser(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	admin := c.scoped(apikey.NewKey{In: c.org, Scopes: []string{apikey.Admin}})
	for _, tt := range []struct {
		body string
		want int
	}{
		{`{"name":"k","scopes":["tools"],"agent_ids":["` + agent + `"],"user_id":"ann"}`, 200},
		{`{"name":"k","scopes":["write"],"user_id":"ann"}`, 422},
		{`{"name":"k","scopes":["tools","read"],"agent_ids":["` + agent + `"],"user_id":"ann"}`, 422},
		{`{"name":"k","scopes":["tools"],"agent_ids":["` + agent + `"],"user_id":" "}`, 422},
	} {
		if got := admin.call("POST", "/v1/admin/keys", tt.body); got.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.body, got.Code, got.Text, tt.want)
		}
	}
}

// An identity is deleted once its conversations and archives are; its blocks and memory files go with it.
func TestAUserIsDeletedWithWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent, _, conversations := talkedWith(c)
	ann := fields(t, c.must("GET", "/v1/conversations/"+conversations["ann"], ""))["identity_id"].(string)
	refused := func() {
		t.Helper()
		if got := c.call("DELETE", "/v1/identities/"+ann, ""); got.Code != 409 || !strings.Contains(got.Text, "delete them") {
			t.Errorf("it is deleted: %d %s", got.Code, got.Text)
		}
	}
	refused()
	c.must("DELETE", "/v1/conversations/"+conversations["ann"], "")
	refused()
	for _, text := range strings.SplitAfter(c.must("GET", "/v1/archives?agent_id="+agent, ""), "},") {
		if strings.Contains(text, ann) {
			id := text[strings.Index(text, "archive-"):][:len("archive-")+36]
			c.must("DELETE", "/v1/archives/"+id, "")
		}
	}
	refused()
	for _, f := range c.list("/v1/folders?limit=100") {
		if f["user_id"] == ann {
			c.must("DELETE", "/v1/folders/"+f["id"].(string), "")
		}
	}
	c.must("DELETE", "/v1/identities/"+ann, "")
	for _, path := range []string{"/v1/memory-trees", "/v1/blocks",
		"/v1/agents/" + agent + "/memory-search?query=zanzibar"} {
		if got := c.must("GET", path, ""); strings.Contains(got, "zanzibar") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := c.must("GET", "/v1/memory-trees", ""); strings.Count(got, `"tree-`) != 2 {
		t.Errorf("the trees are %s, want those of two users", got)
	}
}

// The console and the API say which agents show each user what the others said.
func TestAgentsThatMixUsersAreShown(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent, _, _ := talkedWith(c)
	shown := func() (console, api bool) {
		t.Helper()
		got := c.browse("GET", "/console/agents?card=agents-list", nil)
		if got.Code != 200 || !strings.Contains(got.Text, "support") {
			t.Fatalf("the list of agents: %d %s", got.Code, got.Text)
		}
		return strings.Contains(got.Text, "of 3 users"),
			strings.Contains(c.must("GET", "/v1/agents/mixing-users", ""), `"id":"`+agent+`","name":"support","users":3`)
	}
	if console, api := shown(); console || api {
		t.Errorf("an agent of the scope user is named: in the console %t, by the API %t", console, api)
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"recall_scope":"agent"}`)
	if console, api := shown(); !console || !api {
		t.Errorf("an agent that mixes users is named: in the console %t, by the API %t", console, api)
	}
}
